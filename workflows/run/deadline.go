package run

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
)

// deadline is the running timer for a task's deadline.
type deadline struct {
	readyAt time.Time
	cancel  workflow.CancelFunc
}

// ready starts the deadline of a task that could start, if it has one. Further calls are no-ops.
func (r *run) ready(i int, now time.Time) {
	limit := definition.Deadline(r.core.Definition(i))
	if i >= r.graph.Len() || limit <= 0 || r.deadlines[i] != nil {
		return
	}
	m := r.status.Extras(i)
	if m.ReadyAt.IsZero() {
		m.ReadyAt = now
	}
	ctx, cancel := workflow.WithCancel(r.ctx)
	d := &deadline{readyAt: m.ReadyAt, cancel: cancel}
	r.deadlines[i] = d
	left := max(m.ReadyAt.Add(limit).Sub(now), time.Millisecond)
	r.charge(commandCharge)
	timer := workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "deadline of " + r.core.Name(i)})
	r.pending.Watch(timer, func(f workflow.Future) {
		if f.Get(r.ctx, nil) == nil && r.deadlines[i] == d {
			r.events = append(r.events, dag.Expire{Task: i, Error: fmt.Sprintf("it did not end within its deadline of %s%s", r.core.Definition(i).GetDeadline(), r.missedBecause(i))})
		}
	})
}

// disarm stops the deadline of a task that has ended.
func (r *run) disarm(i int) {
	if d := r.deadlines[i]; d != nil && v1.IsTaskTerminal(r.core.Task(i).State) {
		d.cancel()
		delete(r.deadlines, i)
	}
}

// armRun starts the deadline of the run, if it has one.
func (r *run) armRun() {
	limit := definition.RunDeadline(r.in.GetDefinition())
	if limit <= 0 || r.in.GetPartition() != nil {
		return
	}
	if r.deadlineAt.IsZero() {
		r.deadlineAt = workflow.GetInfo(r.root).WorkflowStartTime.Add(limit)
	}
	left := max(r.deadlineAt.Sub(workflow.Now(r.ctx)), time.Millisecond)
	r.after(left, "deadline of the run", func() {
		r.events = append(r.events, dag.Abort{
			State: v1.TaskFailed, Reason: v1.ReasonDeadline,
			Error: fmt.Sprintf("the run did not end within its deadline of %s%s", r.in.GetDefinition().GetDeadline(), r.firstWait(r.core.Counts(), 0, r.core.Len())),
		})
	})
}

// missedBecause returns what task i waits for, or what an instance of it waits for if none runs, to be appended to the error
// about its deadline. It returns "" if the task does not wait.
func (r *run) missedBecause(i int) string {
	if why := r.waitText(i); why != "" {
		return ": " + why
	}
	first, count := r.core.Instances(i)
	return r.firstWait(r.core.InstanceCounts(i), first, count)
}

// firstWait returns the name of the first waiting task among count tasks starting at first, and what it waits for. It returns
// "" if none waits or if any of them runs. counts holds their numbers by state.
func (r *run) firstWait(counts map[string]int, first, count int) string {
	if counts[v1.TaskAssigned]+counts[v1.TaskRunning] > 0 {
		return ""
	}
	for i := first; i < first+count; i++ {
		if why := r.waitText(i); why != "" {
			return fmt.Sprintf("; %s waited: %s", r.core.Name(i), why)
		}
	}
	return ""
}

// waitText returns why task i waits for a node or for its next attempt, or "" if it does not wait.
func (r *run) waitText(i int) string {
	if r.core.Task(i).State != v1.TaskQueued {
		return ""
	}
	return r.status.Text(i)
}
