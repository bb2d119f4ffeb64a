package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// takeStoreAway makes the store unreachable until the caller calls bringBack.
func takeStoreAway(t *testing.T, y *workertest.Cluster) (bringBack func()) {
	t.Helper()
	here, away := filepath.Join(y.Dir, "store"), filepath.Join(y.Dir, "away")
	if err := os.Rename(here, away); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Rename(away, here); err != nil {
			t.Fatal(err)
		}
	}
}

// waitsForNode reports whether a task of a run waits for its node, which has told that it cannot use the store.
func waitsForNode(r *v1.Run) bool {
	for _, t := range r.GetTasks() {
		if t.GetState() == "queued" && strings.Contains(t.GetError(), "is stale") && strings.Contains(t.GetError(), "the folder is away") {
			return true
		}
	}
	return false
}

// TestRunsWaitForStore checks that a run waits, with a reason, whatever it is about to do when the store becomes
// unreachable. It then continues without a failed or repeated task.
func TestRunsWaitForStore(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{Limits: limits.Run{HistoryEvents: 60}})
	large := fmt.Sprintf(`{"word": "yes", "fill": %q}`, strings.Repeat("x", 40_000))
	c := y.Nodes(t, workertest.Script{
		"large": {{Output: large}}, "many-large": {{Output: large}}, "stored": {{Block: true, Output: large}}, "flaky": {fake.Exit(1), {}},
		// A node waits some time for the record of a completed attempt, and not for that of a failed one.
		"failing": {{Block: true, Result: fake.Exit(75).Result}, fake.Exit(1)}, "many": {fake.Exit(1)}, "runs": {{Block: true}},
	})
	c.Start("n")
	failing := c.Input(`{name: again, tasks: {flaky: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`)
	failed := c.Submit(failing)
	workertest.CheckRun(t, failed.Wait(), "failed", map[string]string{"flaky": "failed"})
	runs := map[string]*workertest.Handle{
		"condition": c.Submit(c.Input(`{name: condition, tasks: {
			large: {type: shell, spec: {command: x}}, gate: {type: approval},
			after: {type: shell, spec: {command: x}, dependsOn: [large, gate], condition: "parent.large.output.word == 'yes'"}}}`)),
		"fan-out": c.Submit(c.Input(`{name: fan, tasks: {
			large: {type: shell, spec: {command: x}}, gate: {type: approval},
			each: {type: shell, spec: {command: x}, dependsOn: [large, gate], foreach: "[parent.large.output.word, 'no']"}}}`)),
		"retry": c.Submit(c.Input(`{name: retry, tasks: {
			failing: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 1, when: "attempt.exitCode == 75"}}}}`)),
		"child":  c.Submit(c.Input(`{name: parent, tasks: {child: {type: run, spec: {definition: {name: child, tasks: {gate: {type: approval}}}}}}}`)),
		"result": c.Submit(c.Input(`{name: result, tasks: {stored: {type: shell, spec: {command: x}}}}`)),
		"input": c.Submit(c.Input(`{name: input, tasks: {
			large: {type: shell, spec: {command: x}}, gate: {type: approval},
			reads: {type: shell, spec: {command: x}, dependsOn: [large, gate]}}}`)),
		"continued": c.Submit(c.Input(`{name: continued, tasks: {gate: {type: approval},
			many: {type: shell, spec: {command: x}, dependsOn: [gate], parallel: 20, batch: 1, maxFailures: 20, retry: {maxRetries: 0}},
			last: {type: shell, spec: {command: x}, dependsOn: [many]}}}`)),
		"cancel": c.Submit(c.Input(`{name: cancelled, tasks: {
			large: {type: shell, spec: {command: x}}, gate: {type: approval},
			never: {type: shell, spec: {command: x}, dependsOn: [large, gate], condition: "parent.large.output.word == 'yes'"}}}`)),
		"cancel-collect": c.Submit(c.Input(`{name: uncollected, tasks: {
			many-large: {type: shell, spec: {command: x}, parallel: 2}, gate: {type: approval}, runs: {type: shell, spec: {command: x}},
			never: {type: shell, spec: {command: x}, dependsOn: [many-large, gate], foreach: "parent['many-large'].outputs"}}}`)),
	}
	for name, task := range map[string]string{"condition": "large", "fan-out": "large", "input": "large", "cancel": "large", "cancel-collect": "many-large"} {
		runs[name].AwaitTask(task, func(t *v1.Task) bool { return t.GetState() == "completed" })
	}
	child := childRun(c, runs["child"].AwaitTask("child", func(t *v1.Task) bool { return t.GetState() == "running" }))
	gates := []*workertest.Handle{runs["condition"], runs["fan-out"], runs["input"], runs["continued"], runs["cancel"], runs["cancel-collect"], child}
	for _, h := range gates {
		h.AwaitTask("gate", func(t *v1.Task) bool { return t.GetState() == "paused" })
	}
	for _, task := range []string{"failing", "stored", "runs"} {
		c.AwaitRunning(task)
	}

	bringBack := takeStoreAway(t, y)
	for _, h := range gates {
		mustUpdate(h, names.ApproveUpdate, "gate")
	}
	c.Fake.Release("failing")
	c.Fake.Release("stored")
	runs["again"] = failed.Rerun(failing, 1, &historyv1.Rerun{Failed: true})
	workertest.Eventually(t, "a run that is done again says why it has not begun", func() bool {
		value, err := c.Conn.QueryWorkflow(t.Context(), failed.ID, "", names.StatusQuery, &historyv1.StatusRequest{})
		var s historyv1.StatusResponse
		return err == nil && value.Get(&s) == nil && s.GetRun().GetState() == "pending" && strings.HasPrefix(s.GetRun().GetProblem(), "waits to load the state")
	})
	problem := func(h *workertest.Handle) string { return h.Status(&historyv1.StatusRequest{}).GetRun().GetProblem() }
	for name, wants := range map[string]string{
		"condition": "waits to evaluate conditions: ", "fan-out": "waits to evaluate conditions: ",
		"retry": "waits to save its status: ", "continued": "waits to save its events: ", "cancel": "waits to evaluate conditions: ",
		"cancel-collect": "waits to collect the outputs of many-large: ",
	} {
		workertest.Eventually(t, "the run of "+name+" says why it waits", func() bool {
			s := runs[name].Status(&historyv1.StatusRequest{}).GetRun()
			return s.GetState() == "running" && (strings.HasPrefix(s.GetProblem(), wants) && strings.Contains(s.GetProblem(), "the folder is away") ||
				waitsForNode(s))
		})
	}
	workertest.Eventually(t, "the child run says why it waits", func() bool { return problem(child) != "" })
	for _, name := range []string{"cancel", "cancel-collect"} {
		runs[name].Cancel(nil)
		runs[name].AwaitTask("never", func(t *v1.Task) bool { return t.GetState() == "cancelled" })
	}
	bringBack()

	workertest.CheckRun(t, runs["condition"].Wait(), "completed", map[string]string{"after": "completed"})
	workertest.CheckRun(t, runs["fan-out"].Wait(), "completed", map[string]string{"each": "completed"})
	workertest.CheckRun(t, runs["retry"].Wait(), "failed", map[string]string{"failing": "failed"})
	workertest.CheckRun(t, runs["child"].Wait(), "completed", map[string]string{"child": "completed"})
	workertest.CheckRun(t, runs["result"].Wait(), "completed", map[string]string{"stored": "completed"})
	workertest.CheckRun(t, runs["input"].Wait(), "completed", map[string]string{"reads": "completed"})
	workertest.CheckRun(t, runs["again"].Wait(), "completed", map[string]string{"flaky": "completed"})
	workertest.CheckRun(t, runs["continued"].Wait(), "completed", map[string]string{"many": "completed", "last": "completed"})
	before := runs["continued"].History(runs["continued"].Chain)
	if end := before[len(before)-1].GetEventType(); end != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW {
		t.Errorf("the first execution of the run ended with %s", end)
	}
	failures := 0
	for _, e := range storedEvents(runs["continued"], 0) {
		if strings.HasPrefix(e.GetTask(), "many[") && e.GetEvent() == "failed" {
			failures++
		}
	}
	if failures != 20 {
		t.Errorf("the events tell of %d failed instances", failures)
	}
	workertest.CheckRun(t, runs["cancel"].Wait(), "cancelled", map[string]string{"never": "cancelled"})
	workertest.CheckRun(t, runs["cancel-collect"].Wait(), "cancelled", map[string]string{"never": "cancelled"})
	for task, n := range map[string]int{"large": 4, "many-large": 2, "many": 20, "last": 1, "after": 1, "each": 2, "stored": 1, "reads": 1, "flaky": 2, "failing": 2, "never": 0} {
		if got := c.Calls()[task]; got != n {
			t.Errorf("%s ran %d times", task, got)
		}
	}
	for name, h := range runs {
		var kept historyv1.StatusResponse
		generation := int32(0)
		if name == "again" {
			generation = 1
		}
		if err := c.Store.GetMessage(t.Context(), storekey.Status(h.Home(), generation), &kept); err != nil || kept.GetRun().GetProblem() != "" {
			t.Errorf("%s: kept %q, %v", name, kept.GetRun().GetProblem(), err)
		}
		if n := len(h.History("")); n > 250 {
			t.Errorf("%s: %d events", name, n)
		}
	}
}

// TestCancelledChildrenInPreparationDoNotStart checks that children cancelled during their own or others' preparation
// do not start, and that all others start, each with its own input.
func TestCancelledChildrenInPreparationDoNotStart(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	c := y.Nodes(t, workertest.Script{"held": {{Block: true}}})
	c.Start("n")
	large := fmt.Sprintf("inputs: {n: {type: integer}}, context: {text: %s},", strings.Repeat("x", 8<<10)) // large enough to go through the store
	document := fmt.Sprintf(`{name: wide, tasks: {gate: {type: approval}, open: {type: run, spec: {definition: %s}},
		each: {type: run, dependsOn: [gate], parallel: 40, concurrency: 40, spec: {input: {n: "${{ input.index }}"}, definition: %s}}}}`,
		childDefinition(c, "held", "held", ""), childDefinition(c, "inner", "a", large))
	all, some := c.Submit(c.Input(document)), c.Submit(c.Input(document))
	workertest.Eventually(t, "both have a child", func() bool { return c.Calls()["held"] == 2 })
	bringBack := takeStoreAway(t, y)
	mustUpdate(all, names.ApproveUpdate, "gate")
	mustUpdate(some, names.ApproveUpdate, "gate")
	for _, h := range []*workertest.Handle{all, some} {
		workertest.Eventually(t, "it waits", func() bool {
			return strings.HasPrefix(h.Status(&historyv1.StatusRequest{}).GetRun().GetProblem(), "waits to prepare child workflows")
		})
	}
	all.Cancel(nil)
	for _, task := range []string{"each[3]", "each[31]", "each[32]", "each[39]"} {
		if err := sendUpdate(some, names.CancelTaskUpdate, &historyv1.TaskCommand{Task: task}); err != nil {
			t.Error(err)
		}
	}
	bringBack()
	workertest.CheckRun(t, all.Wait(), "cancelled", map[string]string{"each": "cancelled", "open": "cancelled"})
	c.Fake.Release("held")
	if counts := some.Wait().GetTasks()["each"].GetCounts(); counts["completed"] != 36 || counts["cancelled"] != 4 || c.Calls()["a"] != 36 {
		t.Errorf("each: %v, %d children have run", counts, c.Calls()["a"])
	}
	for _, i := range instancesPage(some, some.ID, &historyv1.InstancesRequest{Task: "each", Limit: 40}).GetInstances() {
		if i.GetState() != "completed" {
			continue
		}
		if n := childRun(c, i).Wait().GetInput().GetFields()["n"].GetNumberValue(); n != float64(i.GetIndex()) {
			t.Errorf("the child of each[%d] was given %v", i.GetIndex(), n)
		}
	}
	workertest.Eventually(t, "nothing is left", func() bool { return countOpen(all)+countOpen(some) == 0 })
}
