package run_test

import (
	"maps"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
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

// TestFanOutOverUnsuitableValueFails checks that a value that cannot be fanned out over fails the task, and that the
// error shows it.
func TestFanOutOverUnsuitableValueFails(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"find": {{Output: `{"files": "many", "count": -2}`}}})
	c.Start("n")
	run := c.Do(`{name: wrong, tasks: {find: {type: shell, spec: {command: x}},
		list: {type: shell, spec: {command: x}, dependsOn: [find], foreach: find.files},
		number: {type: shell, spec: {command: x}, dependsOn: [find], parallel: find.count}}}`)
	workertest.CheckRun(t, run, "failed", map[string]string{"list": "failed fan_out", "number": "failed fan_out"})
	if !strings.Contains(run.Tasks["list"].GetError(), "many") || !strings.Contains(run.Tasks["number"].GetError(), "-2") {
		t.Errorf("the errors are %q and %q", run.Tasks["list"].GetError(), run.Tasks["number"].GetError())
	}
}

// TestOutputsOfInstancesAreAList checks that downstream tasks get the outputs of instances as a list.
func TestOutputsOfInstancesAreAList(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"each": {{Output: "n=1"}, fake.Exit(1), {Output: "n=3"}}})
	c.Start("n")
	run := c.Do(`{name: outputs, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 3, concurrency: 1, maxFailures: 1, retry: {maxRetries: 0}},
		yes: {type: shell, spec: {command: x}, dependsOn: [each],
			condition: "parent.each.outputs.size() == 3 && parent.each.outputs[0].n == '1' && parent.each.outputs[1] == null && parent.each.completed == 2 && parent.each.failed == 1"},
		again: {type: shell, spec: {command: x}, dependsOn: [each], foreach: parent.each.outputs}}}`)
	workertest.CheckRun(t, run, "completed", map[string]string{"yes": "completed", "again": "completed"})
	if got := strings.Join(valuesSeen(c, "again", "SWITCHYARD_ITEM"), " "); !strings.Contains(got, `"n":`) || len(run.Tasks["again"].GetInstances()) != 3 {
		t.Errorf("items %s of %v", got, run.Tasks["again"])
	}
}

// TestFanOutContinuesAcrossContinueAsNew checks that a fan-out continues through many executions, in batches, and that
// its instances can be paged.
func TestFanOutContinuesAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, shortHistory(100))
	c := y.Nodes(t, workertest.Script{"each": {{Output: "n=1"}, fake.Exit(1), {}}, "z": {{Block: true}}})
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 3 })
	h := c.Submit(c.Input(`{name: long, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 60, concurrency: 7, retry: {backoffMs: 1}, batch: 3},
		z: {type: shell, spec: {command: x}, dependsOn: [each], condition: "parent.each.outputs[0].n == '1' || parent.each.completed == 60"}}}`))
	h.AwaitTask("each", func(x *v1.Task) bool { return x.GetCounts()["completed"] > 10 })
	if err := sendUpdate(h, names.PauseUpdate, &historyv1.RunCommand{}); err != nil && c.Calls()["each"] < 61 {
		t.Fatal(err)
	}
	if err := sendUpdate(h, names.ResumeUpdate, &historyv1.RunCommand{}); err != nil && c.Calls()["each"] < 61 {
		t.Fatal(err)
	}
	h.AwaitTask("each", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if n := len(executionsOf(h)); n < 2 {
		t.Errorf("%d executions", n)
	}
	h.AwaitTask("z", func(x *v1.Task) bool { return x.GetState() == "assigned" })
	page := instancesPage(h, h.ID, &historyv1.InstancesRequest{Task: "each", From: 30, Limit: 5})
	if len(page.GetInstances()) != 5 || page.GetInstances()[0].GetIndex() != 30 || page.GetNext() != 35 {
		t.Errorf("page %v", page)
	}
	c.Fake.Release("z")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "z": "completed"})
	if each := run.Tasks["each"]; len(each.GetInstances()) != 60 || each.GetCounts()["completed"] != 60 || c.Calls()["each"] != 61 {
		t.Errorf("%d instances, %v, %d executions", len(each.GetInstances()), each.GetCounts(), c.Calls()["each"])
	}
}
