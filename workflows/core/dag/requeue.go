package dag

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// These are the values of requeue's parameter what.
const (
	everything  = "everything"  // everything that did not complete
	skippedOnly = "skippedOnly" // skipped instances, with their tasks
)

// requeue reruns tasks: dead letters and tasks with partitioned instances, together with the tasks skipped because of them; the
// tasks selected by what; and the tasks in anew. With a member of a gang, all members run again. It visits every task, like a halt.
func (r *retries) requeue(dead []int, what string, anew []bool) {
	dead = slices.Compact(slices.Sorted(slices.Values(r.withGangs(dead))))
	p := r.ends.tasksPhase // all of `finally` is in anew, or nothing of it
	if len(dead) > 0 {
		p = r.ends.phaseOf(dead[0])
	}
	wasHalted := r.ends.halted(p)
	again := slices.Clone(anew) // tasks below these are decided anew
	for i, rec := range r.tasks {
		task := r.taskOf(i)
		kept := what == "" || rec.State == v1.TaskCompleted || rec.State == v1.TaskStopped || task != i && !again[task]
		if what == skippedOnly {
			kept = kept || task != i && rec.State != v1.TaskSkipped
		}
		if anew[task] || !kept || r.isMember(i) && again[task] {
			again[task] = true
			r.reset(i)
		}
	}
	var resumed []int // tasks that continue without a new decision
	for _, i := range dead {
		task := r.taskOf(i)
		if again[task] && r.tasks[i].State == v1.TaskPending {
			continue
		}
		resumed = append(resumed, task)
		if r.isPartitioned(i) {
			r.byTask[i] = 0
		}
		r.set(i, r.fresh(i, true))
		if task != i {
			r.set(task, r.fresh(task, true))
		}
	}
	for _, task := range resumed {
		again[task] = true
	}
	r.derive()
	r.markRetried(anew)
	r.reviveSkipped(again, p, wasHalted && !r.ends.halted(p))
	r.derive()
	for _, i := range slices.Compact(resumed) {
		if r.ready.progress[i].open == 0 { // otherwise something above it continues as well
			r.starts.begin(i)
		}
	}
	for i := range r.ready.progress {
		if r.hasOpen(i) && r.tasks[i].State == v1.TaskRunning {
			r.fanOuts.start(i)
		}
	}
	r.starts.decideAll()
}

// withGangs adds to instances the other members of their gangs, also those that have completed.
func (r *retries) withGangs(dead []int) []int {
	all := slices.Clone(dead)
	for _, i := range dead {
		if r.isMember(i) {
			for g, k := r.groupOf(i), 0; k < g.count; k++ {
				all = append(all, g.first+k)
			}
		}
	}
	return all
}

// isMember reports whether i is an instance that is a member of a gang.
func (r *retries) isMember(i int) bool { return r.groupOf(i) != nil && r.node(i).def.GetGang() != nil }

// derive recomputes everything that follows from the records.
func (r *retries) derive() {
	r.records.derive()
	r.ready.derive()
	r.ends.derive()
}

// revive makes instances pending again that were skipped for one of the reasons, unless the group is still held back. It
// reports whether there were any.
func (r *retries) revive(g *group, reasons ...string) bool {
	if g.isHeldBack() || g.counts[v1.TaskSkipped] == 0 {
		return false
	}
	revived := false
	for i := g.first; i < g.first+g.count; i++ {
		rec := r.tasks[i]
		if rec.State != v1.TaskSkipped || !slices.Contains(reasons, rec.Reason) {
			continue
		}
		if r.ends.runAllows(i) {
			r.reset(i)
			g.open++
			revived = true
		} else {
			rec.Reason, rec.Error = r.ends.abandoned(i)
			r.set(i, rec)
		}
	}
	return revived
}

// markRetried marks tasks that are rerun on request as requeued by hand if another task keeps the run halted, so that they may
// start regardless.
func (r *retries) markRetried(tasks []bool) {
	for i, insisted := range tasks {
		if insisted && r.ends.halted(r.ends.phaseOf(i)) {
			r.set(i, r.fresh(i, true))
		}
	}
}

// reviveSkipped makes skipped tasks pending again: those below tasks that are rerun and, if the halt of a phase is lifted, those that
// the halt skipped.
func (r *retries) reviveSkipped(again []bool, p *phase, isLifted bool) {
	for i := range r.ready.progress {
		lifted := isLifted && p.contains(i)
		again[i] = again[i] || slices.ContainsFunc(r.graph.nodes[i].parents, func(p int) bool { return again[p] })
		rec := r.tasks[i]
		g := r.instances(i)
		skipped := rec.State == v1.TaskSkipped && (again[i] || lifted && rec.Reason == v1.ReasonHalt)
		switch {
		case skipped && r.ends.mayStart(i):
			again[i] = true
			r.reset(i)
			r.resetSkipped(i, "")
		case skipped:
			again[i] = true
			rec.Reason, rec.Error = r.ends.abandoned(i)
			r.set(i, rec)
		case lifted && r.isPartitioned(i) && rec.State == v1.TaskRunning:
			r.round.resume = append(r.round.resume, i)
		case g != nil && !v1.IsTaskTerminal(rec.State):
			r.revive(g, v1.ReasonMaxFailures)
			if lifted {
				r.resetSkipped(i, v1.ReasonHalt)
			}
		}
	}
}
