package workers

import (
	"fmt"
	"slices"
	"testing"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// events queries an open run for the events that it has not stored.
func (h *handle) events() *v1.EventsResponse {
	h.t.Helper()
	var res v1.EventsResponse
	h.query(h.id, names.EventsQuery, &v1.EventsRequest{}, &res)
	return &res
}

// TestEventsAreStoredInParts checks that a run with many events stores them in parts while it continues, and that every
// event is either in one part or in the run's memory.
func TestEventsAreStoredInParts(t *testing.T) {
	t.Parallel()
	limits := limits.Run{UnstoredEvents: 20}
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"z": {{Block: true}}, "t03": {fake.Exit(1), {}}})
	c.start("n")
	def := &v1.Definition{Name: "eventful", Tasks: map[string]*v1.TaskDefinition{"z": shellTask()}}
	one := int32(1)
	for i := range 12 {
		task := shellTask()
		if i > 0 {
			task.DependsOn = []string{fmt.Sprintf("t%02d", i-1)}
		}
		task.Retry = &v1.RetryPolicy{BackoffMs: &one}
		def.Tasks[fmt.Sprintf("t%02d", i)] = task
	}
	h := c.submit(c.inputOf(def))
	h.until("t11", func(x *v1.Task) bool { return x.GetState() == "completed" })
	unstored := h.events()
	stored := h.stored(0)
	if unstored.GetSlices() < 2 || len(stored) < 40 || len(unstored.GetEvents()) > 20 {
		t.Errorf("%d events in %d parts, %d are kept", len(stored), unstored.GetSlices(), len(unstored.GetEvents()))
	}
	c.fake.Release("z")
	want(t, h.wait(), "completed", nil)
	for i, e := range h.stored(0) {
		if e.GetId() != names.EventID(0, "", int64(i)) {
			t.Fatalf("event %d has the id %s", i, e.GetId())
		}
	}
	for task := range def.GetTasks() {
		life := "submitted queued assigned started completed"
		if task == "t03" {
			life = "submitted queued assigned started failed retried queued assigned started completed"
		}
		if got := h.lifecycle(task, 1); got != life {
			t.Errorf("events of %s are %s, want %s", task, got, life)
		}
	}
	all := h.stored(0)
	if first, last := all[0], all[len(all)-1]; first.GetEvent() != "submitted" || first.GetTask() != "" || last.GetEvent() != "completed" || last.GetTask() != "" {
		t.Errorf("the first event is %v, the last %v", first, last)
	}
	if !slices.EqualFunc(all[:len(stored)], stored, func(a, b *v1.Event) bool { return a.GetEvent() == b.GetEvent() && a.GetTask() == b.GetTask() }) {
		t.Error("what was stored has changed")
	}
	replay(t, "eventful", limits, h.history(""))
}
