package run_test

import (
	"maps"
	"strings"
	"testing"

	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// TestTaskFansOutOverNumberListOrOutput checks fan-outs over a number, a literal list, and a parent's output.
func TestTaskFansOutOverNumberListOrOutput(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"find": {{Output: `{"files": ["a", "b", "c"], "count": 2}`}}})
	c.Start("n")
	h := c.Submit(c.Input(`{name: fanned, tasks: {
		find: {type: shell, spec: {command: x}},
		three: {type: shell, spec: {command: x}, parallel: 3},
		listed: {type: shell, spec: {command: x}, foreach: [x, 7, {k: v}]},
		counted: {type: shell, spec: {command: x}, dependsOn: [find], parallel: find.count},
		each: {type: shell, spec: {command: x}, dependsOn: [find], foreach: find.files, concurrency: 1},
		none: {type: shell, spec: {command: x}, dependsOn: [find], foreach: "[]"},
		last: {type: shell, spec: {command: x}, dependsOn: [three, listed, counted, each, none],
			condition: "parent.each.count == 3 && parent.each.completed == 3 && parent.each.failed == 0 && parent.none.count == 0 && parent.each.exitCode == 0"}}}`))
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"last": "completed"})
	for task, count := range map[string]int{"three": 3, "listed": 3, "counted": 2, "each": 3, "none": 0} {
		got := run.Tasks[task]
		if got.Count == nil || int(got.GetCount()) != count || len(got.GetInstances()) != count || c.Calls()[task] != count {
			t.Errorf("%s has %d instances, of which %d are shown and %d ran, want %d", task, got.GetCount(), len(got.GetInstances()), c.Calls()[task], count)
		}
		if count > 0 && !maps.Equal(got.GetCounts(), map[string]int32{"completed": int32(count)}) {
			t.Errorf("%s: counts %v", task, got.GetCounts())
		}
		for k, i := range got.GetInstances() {
			if int(i.GetIndex()) != k || i.GetState() != "completed" || i.GetNode() != c.Name("n") || i.GetCompletedAt() == nil || len(i.GetAttempts()) > 0 {
				t.Errorf("%s: instance %v", task, i)
			}
		}
	}
	for task, items := range map[string]string{"listed": `7 x {"k":"v"}`, "each": "a b c"} {
		if got := strings.Join(valuesSeen(c, task, "SWITCHYARD_ITEM"), " "); got != items {
			t.Errorf("items of %s: %s", task, got)
		}
	}
	if got := strings.Join(valuesSeen(c, "three", "SWITCHYARD_INDEX"), " "); got != "0 1 2" {
		t.Errorf("indices: %s", got)
	}
	if got := strings.Join(valuesSeen(c, "three", "SWITCHYARD_COUNT"), " "); got != "3 3 3" {
		t.Errorf("counts: %s", got)
	}
	if got := lifecycleOf(h, "each", 1); got != "submitted expanded completed" {
		t.Errorf("events of each: %s", got)
	}
	if got := lifecycleOf(h, "each[1]", 1); got != "queued assigned started completed" {
		t.Errorf("events of each[1]: %s", got)
	}
	workertest.Replay(t, "fan-out", limits.Run{}, h.History(""))
}
