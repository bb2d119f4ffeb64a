package dag

import (
	"fmt"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// fanOuts starts the instances of tasks, stops them after too many failures, and ends a task with its last instance.
type fanOuts struct {
	*records
	ready *readiness
	ends  *ends
}

// expand appends count pending instances of a task and requests a node for each.
func (f *fanOuts) expand(task, from, count int) {
	rec := f.tasks[task]
	g := group{task: task, first: len(f.tasks), from: from, count: count, open: count}
	f.add(g)
	// The claims of a task and of its instances increase together, so that claims of an earlier expansion are never used
	// again.
	claim := rec.Claim
	f.tasks = slices.Grow(f.tasks, g.count)
	rec.State, rec.Reason, rec.Error = v1.TaskRunning, "", ""
	f.set(task, rec)
	f.counts[v1.TaskPending] += g.count
	f.instances(task).counts[v1.TaskPending] = g.count
	for i := g.first; i < g.first+g.count; i++ {
		f.tasks = append(f.tasks, Record{State: v1.TaskPending, Claim: claim, ExitCode: -1})
		f.ready.enqueue(i, f.tasks[i])
	}
}

// partition marks a task whose instances other workflows run as running.
func (f *fanOuts) partition(task, from, count int) {
	rec := f.tasks[task]
	f.add(group{task: task, from: from, count: count, partitioned: true})
	rec.State, rec.Reason, rec.Error = v1.TaskRunning, "", ""
	rec.Claim++
	f.set(task, rec)
}

// halt stops new starts among the instances of a task.
func (f *fanOuts) halt(task int, reason string) {
	if g := f.instances(task); g != nil && g.halted == "" && !f.ends.isCancelled(task) {
		g.halted = reason
		if !v1.IsTaskTerminal(f.tasks[task].State) {
			f.stop(task)
		}
	}
}

// failedInstance reports whether an instance has ended as a failure of its task.
func failedInstance(rec Record) bool {
	return v1.IsTaskFailure(rec.State) || rec.State == v1.TaskCancelled
}

// instanceEnded counts an instance that has ended and updates its group.
func (f *fanOuts) instanceEnded(i int) {
	g := f.groupOf(i)
	task := g.task
	g.open--
	if failedInstance(f.tasks[i]) {
		g.failed++
		if g.failed == g.maxFailures+1 && !f.ends.isCancelled(task) && !f.tasks[task].PendingEnd {
			f.stop(task)
		}
	}
	if f.instances(task).open == 0 && !v1.IsTaskTerminal(f.tasks[task].State) {
		f.end(task)
	}
}

// stop ends all instances of a group that have not started or that wait for approval.
func (f *fanOuts) stop(task int) {
	g := *f.instances(task)
	for i := g.first; i < g.first+g.count; i++ {
		switch {
		case f.waits(i) && !f.ends.mayStart(i):
			f.ends.abandon(i)
		case f.isDispatched(i) && f.node(i).def.GetType() == v1.TypeApproval:
			f.ends.setPendingEnd(i, Failure{State: v1.TaskSkipped, Reason: v1.ReasonMaxFailures, Error: f.stoppedText(&g)})
		}
	}
}

// end ends a task whose instances have all ended. It visits each instance once.
func (f *fanOuts) end(task int) {
	g := *f.instances(task)
	rec := f.tasks[task]
	rec.ExitCode = 0
	ran := false // the exit code is that of an instance that ran
	succeeded, failed, skipped, final := 0, -1, -1, 0
	for i := g.first; i < g.first+g.count; i++ {
		one := &f.tasks[i]
		if one.Final {
			final++
		}
		switch {
		case v1.IsTaskSuccess(one.State):
			succeeded++
		case one.State == v1.TaskSkipped && skipped < 0:
			skipped = i
		case failedInstance(*one) && failed < 0:
			failed = i
		}
		switch {
		case ran || one.ExitCode == 0:
		case one.ExitCode == -1:
			rec.ExitCode = -1
		default:
			rec.ExitCode, ran = one.ExitCode, true
		}
	}
	rec.Reason, rec.Error, rec.Final = "", "", final > g.maxFailures
	switch {
	case succeeded == g.count:
		rec.State = v1.TaskCompleted
	case rec.PendingEnd:
		rec.State, rec.Reason, rec.Error = rec.Failure.State, rec.Failure.Reason, rec.Failure.Error
	case f.ends.isCancelled(task):
		rec.State, rec.Reason, rec.Error = v1.TaskCancelled, v1.ReasonRunCancelled, f.ends.phaseOf(task).aborted.Error
	case g.isStopped():
		rec.State, rec.Reason, rec.Error = v1.TaskFailed, v1.ReasonInstances, f.failureText(&g, failed)
	case skipped >= 0:
		rec.State, rec.Reason, rec.Error = v1.TaskSkipped, f.tasks[skipped].Reason, f.tasks[skipped].Error
	default:
		rec.State = v1.TaskCompleted
	}
	f.ends.finish(task, rec)
}

// failureText returns a message for people about the failure of a group, such as
//
//	2 of 10 instances failed: each[3]: exit code 1
//
// first is the failed instance with the lowest number.
func (f *fanOuts) failureText(g *group, first int) string {
	rec := f.tasks[first]
	detail := OneLine(rec.Error)
	if detail == "" {
		detail = rec.Reason
	}
	if detail == "" {
		detail = rec.State
	}
	return fmt.Sprintf("%d of %d instances failed: %s: %s", g.failed, g.count, f.name(first), detail)
}

// start starts the pending instances of a running task. It ends the task if nothing is left to do.
func (f *fanOuts) start(task int) {
	g := *f.instances(task)
	for i := g.first; i < g.first+g.count; i++ {
		switch {
		case f.tasks[i].State != v1.TaskPending:
		case f.ends.mayStart(i):
			f.ready.enqueue(i, f.tasks[i])
		default:
			f.ends.abandon(i)
		}
	}
	if g = *f.instances(task); g.open == 0 && !v1.IsTaskTerminal(f.tasks[task].State) {
		f.end(task)
	}
}
