package run

import (
	"strings"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// newDeadlines returns the deadlines of a run with one task, which waits for a node.
func newDeadlines(t *testing.T) (*deadlines, *fakeOutbox) {
	t.Helper()
	def := tasks(map[string]*v1.TaskDefinition{"build": {Type: v1.TypeShell, Deadline: "10m"}})
	def.Deadline = "1h"
	x, o := newExecution(t, def), &fakeOutbox{}
	apply(x, x.core.Start())
	return &deadlines{execution: x, outbox: o, tasks: map[int]*deadline{}}, o
}

// The deadline of a task starts once. When it passes, the task expires with what it was waiting for.
func TestDeadlineOfTaskNamesTheWait(t *testing.T) {
	t.Parallel()
	ds, o := newDeadlines(t)
	ds.start(0, startTime)
	ds.start(0, startTime.Add(time.Minute))
	if len(o.timers) != 1 || o.timers[0].after != 10*time.Minute || o.charged != commandCharge {
		t.Fatalf("%d timers, %d bytes charged", len(o.timers), o.charged)
	}
	ds.status.SetWaitReason(0, "no node has a GPU")
	o.timers[0].fire()
	events := ds.takeEvents()
	if len(events) != 1 || events[0] != (dag.Expire{Task: 0, Error: "it did not end within its deadline of 10m: no node has a GPU"}) {
		t.Errorf("the core receives %+v", events)
	}
}

// A task that was ready in an earlier execution has only the rest of its time, but never none.
func TestDeadlineContinuesFromTheFirstStart(t *testing.T) {
	t.Parallel()
	for passed, left := range map[time.Duration]time.Duration{4 * time.Minute: 6 * time.Minute, time.Hour: time.Millisecond} {
		ds, o := newDeadlines(t)
		ds.records.At(0).ReadyAt = startTime.Add(-passed)
		ds.start(0, startTime)
		if len(o.timers) != 1 || o.timers[0].after != left {
			t.Errorf("after %v: %+v, want %v", passed, o.timers, left)
		}
	}
}

// The timer stops with the task, and a timer that fires regardless changes nothing.
func TestDeadlineStopsWithTheTask(t *testing.T) {
	t.Parallel()
	ds, o := newDeadlines(t)
	ds.start(0, startTime)
	ds.stop(0)
	if o.timers[0].stopped {
		t.Fatal("the deadline of a waiting task is stopped")
	}
	apply(ds.execution, ds.core.Apply(dag.Cancel{}))
	ds.stop(0)
	o.timers[0].fire()
	if events := ds.takeEvents(); !o.timers[0].stopped || len(events) > 0 {
		t.Errorf("stopped: %v, events: %v", o.timers[0].stopped, events)
	}
}

// The next execution gets the time at which the deadline of the run passes, not a new deadline.
func TestDeadlineOfRunIsCarried(t *testing.T) {
	t.Parallel()
	before, _ := newDeadlines(t)
	before.runAt = startTime.Add(20 * time.Minute)
	var carried v1.RunState
	before.save(&carried)
	ds, o := newDeadlines(t)
	ds.restore(&carried)
	ds.startRun()
	if len(o.timers) != 1 || o.timers[0].after != 20*time.Minute {
		t.Fatalf("timers: %+v", o.timers)
	}
	ds.status.SetWaitReason(0, "every node is full")
	o.timers[0].fire()
	end, ok := ds.takeEvents()[0].(dag.Abort)
	if !ok || end.Reason != v1.ReasonDeadline || !strings.HasSuffix(end.Error, "deadline of 1h; build waited: every node is full") {
		t.Errorf("the run ends with %+v", end)
	}
}
