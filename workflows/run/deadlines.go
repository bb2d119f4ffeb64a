package run

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
)

// deadlines owns the deadlines of tasks and of the run.
type deadlines struct {
	*execution
	outbox deadlineOutbox

	tasks map[int]*deadline
	runAt time.Time // deadline of the run; zero if it has none
}

// The deadlines use these parts of other components.
type (
	deadlineOutbox interface {
		charge(bytes int)
		after(d time.Duration, summary string, do func())
		startTimer(d time.Duration, summary string, do func()) (stop func())
	}
)

// deadline is the running timer for a task's deadline.
type deadline struct {
	stop func()
}

// start starts the deadline of a task that could start, if it has one. Further calls are no-ops.
func (ds *deadlines) start(i int, now time.Time) {
	limit := definition.Deadline(ds.core.Definition(i))
	if i >= ds.graph.Len() || limit <= 0 || ds.tasks[i] != nil {
		return
	}
	m := ds.records.At(i)
	if m.ReadyAt.IsZero() {
		m.ReadyAt = now
	}
	d := &deadline{}
	ds.tasks[i] = d
	left := max(m.ReadyAt.Add(limit).Sub(now), time.Millisecond)
	ds.outbox.charge(commandCharge)
	d.stop = ds.outbox.startTimer(left, "deadline of "+ds.core.Name(i), func() {
		if ds.tasks[i] == d {
			ds.raise(dag.Expire{Task: i, Error: fmt.Sprintf("it did not end within its deadline of %s%s", ds.core.Definition(i).GetDeadline(), ds.missedBecause(i))})
		}
	})
}

// stop stops the deadline of a task that has ended.
func (ds *deadlines) stop(i int) {
	if d := ds.tasks[i]; d != nil && v1.IsTaskTerminal(ds.core.Task(i).State) {
		d.stop()
		delete(ds.tasks, i)
	}
}

// save hands the deadline of the run over to the next execution.
func (ds *deadlines) save(c *v1.RunState) {
	if !ds.runAt.IsZero() {
		c.DeadlineAt = timestamppb.New(ds.runAt)
	}
}

// restore continues with the deadline of the run.
func (ds *deadlines) restore(c *v1.RunState) {
	if c.GetDeadlineAt() != nil {
		ds.runAt = c.GetDeadlineAt().AsTime()
	}
}

// startRun starts the deadline of the run, if it has one.
func (ds *deadlines) startRun() {
	limit := definition.RunDeadline(ds.in.GetDefinition())
	if limit <= 0 || ds.in.GetPartition() != nil {
		return
	}
	if ds.runAt.IsZero() {
		ds.runAt = workflow.GetInfo(ds.root).WorkflowStartTime.Add(limit)
	}
	left := max(ds.runAt.Sub(ds.now()), time.Millisecond)
	ds.outbox.after(left, "deadline of the run", func() {
		ds.raise(dag.Abort{
			State: v1.TaskFailed, Reason: v1.ReasonDeadline,
			Error: fmt.Sprintf("the run did not end within its deadline of %s%s", ds.in.GetDefinition().GetDeadline(), ds.firstWait(ds.core.Counts(), 0, ds.core.Len())),
		})
	})
}

// missedBecause returns what task i waits for, or what an instance of it waits for if none runs, to be appended to the error
// about its deadline. It returns "" if the task does not wait.
func (ds *deadlines) missedBecause(i int) string {
	if why := ds.waitText(i); why != "" {
		return ": " + why
	}
	first, count := ds.core.Instances(i)
	return ds.firstWait(ds.core.InstanceCounts(i), first, count)
}

// firstWait returns the name of the first waiting task among count tasks starting at first, and what it waits for. It returns
// "" if none waits or if any of them runs. counts holds their numbers by state.
func (ds *deadlines) firstWait(counts map[string]int, first, count int) string {
	if counts[v1.TaskAssigned]+counts[v1.TaskRunning] > 0 {
		return ""
	}
	for i := first; i < first+count; i++ {
		if why := ds.waitText(i); why != "" {
			return fmt.Sprintf("; %s waited: %s", ds.core.Name(i), why)
		}
	}
	return ""
}

// waitText returns why task i waits for a node or for its next attempt, or "" if it does not wait.
func (ds *deadlines) waitText(i int) string {
	if ds.core.Task(i).State != v1.TaskQueued {
		return ""
	}
	return ds.status.Text(i)
}
