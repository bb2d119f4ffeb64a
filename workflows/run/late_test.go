package run_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/visibility"
)

// TestLateRunContinues checks that a run and a task that take longer than expected are marked, each once, and complete.
func TestLateRunContinues(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"slow": {{Block: true}}, "each": {{}, {}}})
	c.Start("n")
	h := c.Submit(c.Input(`
name: late
expectedWithin: 20ms
tasks:
  slow: { type: shell, spec: { command: x }, expectedWithin: 10ms }
  quick: { type: shell, spec: { command: x }, expectedWithin: 1h }
  each: { type: shell, spec: { command: x }, parallel: 2, expectedWithin: 1h }
  usual: { type: shell, spec: { command: x }, dependsOn: [slow] }
`))
	slow := h.AwaitTask("slow", func(x *v1.Task) bool { return x.GetLateSince() != nil })
	late := func(events []*v1.Event) []*v1.Event {
		return slices.DeleteFunc(events, func(e *v1.Event) bool { return e.GetEvent() != v1.EventLate })
	}
	workertest.Eventually(t, "the run is late, too", func() bool { return len(late(eventsOf(h).GetEvents())) == 2 })
	c.Fake.Release("slow")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"slow": "completed", "quick": "completed", "each": "completed", "usual": "completed"})
	for name, task := range run.GetTasks() {
		if got := task.GetLateSince() != nil; got != (name == "slow") {
			t.Errorf("%s is late: %v", name, got)
		}
	}
	events := late(storedEvents(h, 0))
	if len(events) != 2 {
		t.Errorf("events %v, want one of the run and one of the task", events)
	}
	for _, e := range events {
		until, err := time.Parse(time.RFC3339, e.GetData().GetFields()["until"].GetStringValue())
		if err != nil || until.After(e.GetAt().AsTime()) || !strings.Contains(e.GetDetail(), "has not ended within the expected ") {
			t.Errorf("event %v", e)
		}
	}
	known := visibility.Decode(describeRun(h).GetWorkflowExecutionInfo().GetSearchAttributes())
	if first := slow.GetLateSince().AsTime(); known.LateSince.After(first) || known.LateSince.Before(run.GetCreatedAt().AsTime()) {
		t.Errorf("late since %v, and its task since %v", known.LateSince, first)
	}
	workertest.Replay(t, "late", limits.Run{}, h.History(""))
}
