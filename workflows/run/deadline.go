package run

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
)

// deadline is the timer of a task that may not take for ever.
type deadline struct {
	readyAt time.Time
	cancel  workflow.CancelFunc
}

// ready begins the time that a task has by its deadline, if it has one. It may be
// called whenever the task could start.
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

// disarm ends the time of a task that has ended.
func (r *run) disarm(i int) {
	if d := r.deadlines[i]; d != nil && v1.IsTaskTerminal(r.core.Task(i).State) {
		d.cancel()
		delete(r.deadlines, i)
	}
}

// armRun begins the time that the run has by its deadline, if it has one.
func (r *run) armRun() {
	limit := definition.RunDeadline(r.in.GetDefinition())
	if limit <= 0 || r.in.GetPart() != nil {
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

// missedBecause returns what task i waits for, or an instance of it if none runs, to be added to an error about its
// deadline, or "" if it does not wait.
func (r *run) missedBecause(i int) string {
	if why := r.waitText(i); why != "" {
		return ": " + why
	}
	first, count := r.core.Instances(i)
	return r.firstWait(r.core.InstanceCounts(i), first, count)
}

// firstWait returns what the first of count tasks from first on waits for, with its name, or "" if none waits, or some run.
// counts has their number by state.
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

// waitText returns why task i waits for a node or for its next attempt, or "" if it does not.
func (r *run) waitText(i int) string {
	if r.core.Task(i).State != v1.TaskQueued {
		return ""
	}
	return r.status.Text(i)
}
