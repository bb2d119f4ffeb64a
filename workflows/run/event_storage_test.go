package run_test

import (
	"slices"
	"testing"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"

	"google.golang.org/protobuf/proto"
)

// TestEventsAreStoredInSlices checks that a run with many events stores them in slices while it continues, and that
// every event is either in one slice or in the run's memory.
func TestEventsAreStoredInSlices(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, tightLimits)
	c := y.Nodes(t, workertest.Script{"z": {{Block: true}}, "t03": {fake.Exit(1), {}}})
	c.Start("n")
	def := chainBeside(12, map[string]*v1.TaskDefinition{"z": workertest.ShellTask()})
	def.Tasks["t03"].Retry = &v1.RetryPolicy{BackoffMs: proto.Int32(1)}
	h := c.Submit(c.InputOf(def))
	h.AwaitTask("t11", func(x *v1.Task) bool { return x.GetState() == "completed" })
	unstored := eventsOf(h)
	stored := storedEvents(h, 0)
	if unstored.GetSlices() < 2 || len(stored) < 40 || len(unstored.GetEvents()) > 20 {
		t.Errorf("%d events in %d parts, %d are kept", len(stored), unstored.GetSlices(), len(unstored.GetEvents()))
	}
	c.Fake.Release("z")
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	for i, e := range storedEvents(h, 0) {
		if e.GetId() != names.EventID(0, "", int64(i)) {
			t.Fatalf("event %d has the id %s", i, e.GetId())
		}
	}
	for task := range def.GetTasks() {
		life := "submitted queued assigned started completed"
		if task == "t03" {
			life = "submitted queued assigned started failed retried queued assigned started completed"
		}
		if got := lifecycleOf(h, task, 1); got != life {
			t.Errorf("events of %s are %s, want %s", task, got, life)
		}
	}
	all := storedEvents(h, 0)
	if first, last := all[0], all[len(all)-1]; first.GetEvent() != "submitted" || first.GetTask() != "" || last.GetEvent() != "completed" || last.GetTask() != "" {
		t.Errorf("the first event is %v, the last %v", first, last)
	}
	if !slices.EqualFunc(all[:len(stored)], stored, func(a, b *v1.Event) bool { return a.GetEvent() == b.GetEvent() && a.GetTask() == b.GetTask() }) {
		t.Error("what was stored has changed")
	}
	workertest.Replay(t, "eventful", tightLimits, h.History(""))
}
