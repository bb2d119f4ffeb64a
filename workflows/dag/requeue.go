package dag

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// retry requeues a dead letter. If its task still runs, only that instance and those skipped for maxFailures change.
func (s *State) retry(i int) {
	g := s.groupOf(i)
	if g == nil || v1.IsTaskTerminal(s.tasks[g.task].State) {
		s.requeue([]int{i}, "", make([]bool, s.graph.Len()))
		return
	}
	s.set(i, s.fresh(i, true))
	g.open++
	g.failed--
	if s.tasks[g.task].State != v1.TaskRunning { // its instances begin together later
		s.revive(g, v1.ReasonMaxFailures)
		return
	}
	s.enqueue(i, s.tasks[i])
	if g.failed == s.graph.nodes[g.task].maxFailures && s.revive(g, v1.ReasonMaxFailures) { // one failure fewer, so they may start again
		s.startInstances(g.task)
	}
}

// These are the values of requeue's parameter what.
const (
	everything  = "everything"  // everything that did not complete
	skippedOnly = "skippedOnly" // skipped instances, with their tasks
)

// requeue reruns tasks: dead letters and tasks with partitioned instances, together with the tasks skipped because of them; the
// tasks selected by what; and the tasks in anew. It visits every task, like a halt.
func (s *State) requeue(dead []int, what string, anew []bool) {
	dead = slices.Compact(slices.Sorted(slices.Values(dead)))
	wasHalted := s.halted()
	again := slices.Clone(anew) // tasks below these are decided anew
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
	var resumed []int // tasks that continue without a new decision
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
		if s.progress[i].open == 0 { // otherwise something above it continues as well
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

// fresh returns the record of a task or instance that is rerun.
func (s *State) fresh(i int, retried bool) Record {
	return Record{State: v1.TaskPending, Claim: s.tasks[i].Claim, ExitCode: -1, Retried: retried}
}

// reset makes a task or instance pending as if it had never begun. Partitioned instances are dropped.
func (s *State) reset(i int) {
	if s.isPartitioned(i) {
		s.progress[i].group = 0
	}
	s.set(i, s.fresh(i, false))
}

// revive makes instances pending again that were skipped for one of the reasons, unless the group is still held back. It
// reports whether there were any.
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

// insist lets tasks that are rerun on request start in a run that another task keeps halted.
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

// wait makes skipped tasks pending again: those below tasks that are rerun and, if the halt is lifted, those that the halt
// skipped.
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

// resetSkipped makes the instances of a task pending again that were skipped for a reason. An empty reason matches any.
func (s *State) resetSkipped(task int, reason string) {
	first, count := s.Instances(task)
	for i := first; i < first+count; i++ {
		if rec := &s.tasks[i]; rec.State == v1.TaskSkipped && (reason == "" || rec.Reason == reason) {
			s.reset(i)
		}
	}
}
