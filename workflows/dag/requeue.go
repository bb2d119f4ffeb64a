package dag

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// retry puts a dead letter back. Where its task still runs, only that is touched.
func (s *State) retry(i int) {
	g := s.groupOf(i)
	if g == nil || v1.IsTaskTerminal(s.tasks[g.task].State) {
		s.requeue([]int{i}, "", make([]bool, s.graph.Len()))
		return
	}
	s.set(i, s.fresh(i, true))
	g.open++
	g.failed--
	if s.tasks[g.task].State != v1.TaskRunning { // it begins later, with all of them
		s.revive(g, v1.ReasonMaxFailures)
		return
	}
	s.enqueue(i, s.tasks[i])
	if g.failed == s.graph.nodes[g.task].maxFailures && s.revive(g, v1.ReasonMaxFailures) { // one fewer, and they may start again
		s.startInstances(g.task)
	}
}

// What requeue does again.
const (
	everything  = "everything"  // that did not complete
	skippedOnly = "skippedOnly" // instances that were skipped, with their tasks
)

// requeue has things done again: dead letters, and tasks whose instances are elsewhere, with what was skipped for
// their sake; what the word says; and the tasks of anew. It looks at everything, like a halt.
func (s *State) requeue(dead []int, what string, anew []bool) {
	dead = slices.Compact(slices.Sorted(slices.Values(dead)))
	wasHalted := s.halted()
	again := slices.Clone(anew) // what is below these is decided anew
	for i, rec := range s.tasks {
		task := s.taskOf(i)
		kept := what == "" || rec.State == v1.TaskCompleted || rec.State == v1.TaskStopped || task != i && !again[task]
		if what == skippedOnly {
			kept = kept || task != i && rec.State != v1.TaskSkipped
		}
		if anew[task] || !kept {
			again[task] = true
			s.reset(i)
		}
	}
	var resumed []int // tasks that continue without being decided about again
	for _, i := range dead {
		task := s.taskOf(i)
		if again[task] && s.tasks[i].State == v1.TaskPending {
			continue
		}
		resumed = append(resumed, task)
		if s.isPartitioned(i) {
			s.progress[i].group = 0
		}
		s.set(i, s.fresh(i, true))
		if task != i {
			s.set(task, s.fresh(task, true))
		}
	}
	for _, task := range resumed {
		again[task] = true
	}
	s.derive()
	s.insist(anew)
	s.wait(again, wasHalted && !s.halted())
	s.derive()
	for _, i := range slices.Compact(resumed) {
		if s.progress[i].open == 0 { // else something above it continues as well
			s.begin(i)
		}
	}
	for i := range s.progress {
		if s.hasOpen(i) && s.tasks[i].State == v1.TaskRunning {
			s.startInstances(i)
		}
	}
	s.readyAll()
}

// fresh is the record of something that is done again.
func (s *State) fresh(i int, retried bool) Record {
	return Record{State: v1.TaskPending, Claim: s.tasks[i].Claim, ExitCode: -1, Retried: retried}
}

// reset has something wait as if it had never begun. Instances that are elsewhere
// are forgotten.
func (s *State) reset(i int) {
	if s.isPartitioned(i) {
		s.progress[i].group = 0
	}
	s.set(i, s.fresh(i, false))
}

// revive has the instances wait again that were skipped for one of the reasons, if
// nothing holds the group back any more. It reports whether there were any.
func (s *State) revive(g *group, reasons ...string) bool {
	if s.isHeldBack(g) || g.counts[v1.TaskSkipped] == 0 {
		return false
	}
	revived := false
	for i := g.first; i < g.first+g.count; i++ {
		rec := s.tasks[i]
		if rec.State != v1.TaskSkipped || !slices.Contains(reasons, rec.Reason) {
			continue
		}
		if s.runAllows(i) {
			s.reset(i)
			g.open++
			revived = true
		} else {
			rec.Reason, rec.Error = s.abandoned(i)
			s.set(i, rec)
		}
	}
	return revived
}

// insist lets tasks start that are done again on request, in a run that another
// task keeps halted.
func (s *State) insist(tasks []bool) {
	if !s.halted() {
		return
	}
	for i, insisted := range tasks {
		if insisted {
			s.set(i, s.fresh(i, true))
		}
	}
}

// wait has what was skipped wait again: below tasks that are done again, and if
// the halt is lifted what it skipped.
func (s *State) wait(again []bool, lifted bool) {
	for i := range s.progress {
		again[i] = again[i] || slices.ContainsFunc(s.graph.nodes[i].parents, func(p int) bool { return again[p] })
		rec := s.tasks[i]
		g := s.instances(i)
		skipped := rec.State == v1.TaskSkipped && (again[i] || lifted && rec.Reason == v1.ReasonHalt)
		switch {
		case skipped && s.mayStart(i):
			again[i] = true
			s.reset(i)
			s.resetSkipped(i, "")
		case skipped:
			again[i] = true
			rec.Reason, rec.Error = s.abandoned(i)
			s.set(i, rec)
		case lifted && s.isPartitioned(i) && rec.State == v1.TaskRunning:
			s.round.resume = append(s.round.resume, i)
		case g != nil && !v1.IsTaskTerminal(rec.State):
			s.revive(g, v1.ReasonMaxFailures)
			if lifted {
				s.resetSkipped(i, v1.ReasonHalt)
			}
		}
	}
}

// resetSkipped has the instances of a task wait again that were skipped for a
// reason; an empty one stands for any.
func (s *State) resetSkipped(task int, reason string) {
	first, count := s.Instances(task)
	for i := first; i < first+count; i++ {
		if rec := &s.tasks[i]; rec.State == v1.TaskSkipped && (reason == "" || rec.Reason == reason) {
			s.reset(i)
		}
	}
}
