package workers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// takeAway makes the store unreachable until the caller calls bringBack.
func (y *cluster) takeAway(t *testing.T) (bringBack func()) {
	t.Helper()
	here, away := filepath.Join(y.dir, "store"), filepath.Join(y.dir, "away")
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

// TestRunsWaitForStore checks that a run waits, with a reason, whatever it is about to do when the store becomes
// unreachable. It then continues without a failed or repeated task.
func TestRunsWaitForStore(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: limits.Run{HistoryEvents: 100}})
	large := fmt.Sprintf(`{"word": "yes", "fill": %q}`, strings.Repeat("x", 40_000))
	block := []fake.Step{{Block: true}}
	c := y.workers(t, script{
		"large": {{Output: large}}, "gate": block, "inner": block, "failing": {{Block: true, Result: fake.Exit(75).Result}, {}},
		"cancelled-large": {{Output: large}}, "cancelled-gate": block, "many-large": {{Output: large}},
		"stored": {{Block: true, Output: large}}, "flaky": {fake.Exit(1), {}},
	})
	c.start("n")
	failing := c.input(`{name: again, tasks: {flaky: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`)
	failed := c.submit(failing)
	want(t, failed.wait(), "failed", map[string]string{"flaky": "failed"})
	runs := map[string]*handle{
		"condition": c.submit(c.input(`{name: condition, tasks: {
			large: {type: shell, spec: {command: x}}, gate: {type: shell, spec: {command: x}},
			after: {type: shell, spec: {command: x}, dependsOn: [large, gate], condition: "parent.large.output.word == 'yes'"}}}`)),
		"fan-out": c.submit(c.input(`{name: fan, tasks: {
			large: {type: shell, spec: {command: x}}, gate: {type: shell, spec: {command: x}},
			each: {type: shell, spec: {command: x}, dependsOn: [large, gate], foreach: "[parent.large.output.word, 'no']"}}}`)),
		"retry": c.submit(c.input(`{name: retry, tasks: {
			failing: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 1, when: "attempt.exitCode == 75"}}}}`)),
		"child": c.submit(c.input(fmt.Sprintf(`{name: parent, tasks: {
			child: {type: run, spec: {definition: %s}}}}`, c.childDefinition("child", "inner", "")))),
		"result": c.submit(c.input(`{name: result, tasks: {stored: {type: shell, spec: {command: x}}}}`)),
		"input": c.submit(c.input(`{name: input, tasks: {
			large: {type: shell, spec: {command: x}}, gate: {type: shell, spec: {command: x}},
			reads: {type: shell, spec: {command: x}, dependsOn: [large, gate]}}}`)),
		"continued": c.submit(c.input(`{name: continued, tasks: {gate: {type: shell, spec: {command: x}},
			many: {type: shell, spec: {command: x}, dependsOn: [gate], parallel: 40, batch: 1},
			last: {type: shell, spec: {command: x}, dependsOn: [many]}}}`)),
		"cancel": c.submit(c.input(`{name: cancelled, tasks: {
			cancelled-large: {type: shell, spec: {command: x}}, cancelled-gate: {type: shell, spec: {command: x}},
			never: {type: shell, spec: {command: x}, dependsOn: [cancelled-large, cancelled-gate], condition: "parent['cancelled-large'].output.word == 'yes'"}}}`)),
		"cancel-collect": c.submit(c.input(`{name: uncollected, tasks: {
			many-large: {type: shell, spec: {command: x}, parallel: 2}, cancelled-gate: {type: shell, spec: {command: x}},
			never: {type: shell, spec: {command: x}, dependsOn: [many-large, cancelled-gate], foreach: "parent['many-large'].outputs"}}}`)),
	}
	for name, task := range map[string]string{"condition": "large", "fan-out": "large", "input": "large", "cancel": "cancelled-large", "cancel-collect": "many-large"} {
		runs[name].until(task, func(t *v1.Task) bool { return t.GetState() == "completed" })
	}
	for _, task := range []string{"gate", "inner", "failing", "stored", "cancelled-gate"} {
		c.running(task)
	}
	eventually(t, "all gates are closed", func() bool { return c.calls()["gate"] == 4 && c.calls()["cancelled-gate"] == 2 })

	bringBack := y.takeAway(t)
	for _, task := range []string{"gate", "inner", "failing", "stored", "cancelled-gate"} {
		c.fake.Release(task)
	}
	runs["again"] = failed.anew(failing, 1, &v1.Rerun{Failed: true})
	eventually(t, "a run that is done again says why it has not begun", func() bool {
		value, err := c.conn.QueryWorkflow(t.Context(), failed.id, "", names.StatusQuery, &v1.StatusRequest{})
		var s v1.StatusResponse
		return err == nil && value.Get(&s) == nil && s.GetRun().GetState() == "pending" && strings.HasPrefix(s.GetRun().GetProblem(), "waits to load the state")
	})
	problem := func(h *handle) string { return h.status(&v1.StatusRequest{}).GetRun().GetProblem() }
	for name, wants := range map[string]string{
		"condition": "waits to evaluate conditions: ", "fan-out": "waits to evaluate conditions: ",
		"retry": "waits to save its status: ", "continued": "waits to save its events: ", "cancel": "waits to evaluate conditions: ",
		"cancel-collect": "waits to collect the outputs of many-large: ",
	} {
		eventually(t, "the run of "+name+" says why it waits", func() bool { return strings.HasPrefix(problem(runs[name]), wants) })
		if s := runs[name].status(&v1.StatusRequest{}).GetRun(); s.GetState() != "running" || !strings.Contains(s.GetProblem(), "the folder is away") {
			t.Errorf("%s: %s, %q", name, s.GetState(), s.GetProblem())
		}
	}
	child := &handle{workerSet: c, id: runs["child"].status(&v1.StatusRequest{}).GetRun().GetTasks()["child"].GetChildRun()}
	eventually(t, "the child run says why it waits", func() bool { return problem(child) != "" })
	for _, name := range []string{"cancel", "cancel-collect"} {
		runs[name].signal(nil)
		runs[name].until("never", func(t *v1.Task) bool { return t.GetState() == "cancelled" })
	}
	bringBack()

	want(t, runs["condition"].wait(), "completed", map[string]string{"after": "completed"})
	want(t, runs["fan-out"].wait(), "completed", map[string]string{"each": "completed"})
	want(t, runs["retry"].wait(), "completed", map[string]string{"failing": "completed"})
	want(t, runs["child"].wait(), "completed", map[string]string{"child": "completed"})
	want(t, runs["result"].wait(), "completed", map[string]string{"stored": "completed"})
	want(t, runs["input"].wait(), "completed", map[string]string{"reads": "completed"})
	want(t, runs["again"].wait(), "completed", map[string]string{"flaky": "completed"})
	want(t, runs["continued"].wait(), "completed", map[string]string{"many": "completed", "last": "completed"})
	before := runs["continued"].history(runs["continued"].chain)
	if end := before[len(before)-1].GetEventType(); end != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW {
		t.Errorf("the first execution of the run ended with %s", end)
	}
	completed := 0
	for _, e := range runs["continued"].stored(0) {
		if strings.HasPrefix(e.GetTask(), "many[") && e.GetEvent() == "completed" {
			completed++
		}
	}
	if completed != 40 {
		t.Errorf("the events tell of %d completed instances", completed)
	}
	want(t, runs["cancel"].wait(), "cancelled", map[string]string{"never": "cancelled"})
	want(t, runs["cancel-collect"].wait(), "cancelled", map[string]string{"never": "cancelled"})
	for task, n := range map[string]int{"large": 3, "gate": 4, "many": 40, "last": 1, "after": 1, "each": 2, "stored": 1, "reads": 1, "flaky": 2, "failing": 2, "inner": 1, "cancelled-gate": 2, "never": 0} {
		if got := c.calls()[task]; got != n {
			t.Errorf("%s ran %d times", task, got)
		}
	}
	for name, h := range runs {
		var kept v1.StatusResponse
		generation := int32(0)
		if name == "again" {
			generation = 1
		}
		if err := c.store.GetMessage(t.Context(), storekey.Status(h.home(), generation), &kept); err != nil || kept.GetRun().GetProblem() != "" {
			t.Errorf("%s: kept %q, %v", name, kept.GetRun().GetProblem(), err)
		}
		if n := len(h.history("")); n > 250 {
			t.Errorf("%s: %d events", name, n)
		}
	}
}

// TestCancelWhileChildrenArePrepared checks that children cancelled during their own or others' preparation do not
// start, and that all others start, each with its own input.
func TestCancelWhileChildrenArePrepared(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{})
	c := y.workers(t, script{"gate": {{Block: true}}, "held": {{Block: true}}})
	c.start("n")
	large := fmt.Sprintf("inputs: {n: {type: integer}}, context: {text: %s},", strings.Repeat("x", 8<<10)) // large enough to go through the store
	document := fmt.Sprintf(`{name: wide, tasks: {gate: {type: shell, spec: {command: x}}, open: {type: run, spec: {definition: %s}},
		each: {type: run, dependsOn: [gate], parallel: 80, concurrency: 80, spec: {input: {n: "${{ input.index }}"}, definition: %s}}}}`,
		c.childDefinition("held", "held", ""), c.childDefinition("inner", "a", large))
	all, some := c.submit(c.input(document)), c.submit(c.input(document))
	eventually(t, "both gates are closed", func() bool { return c.calls()["gate"] == 2 && c.calls()["held"] == 2 })
	bringBack := y.takeAway(t)
	c.fake.Release("gate")
	for _, h := range []*handle{all, some} {
		eventually(t, "it waits", func() bool {
			return strings.HasPrefix(h.status(&v1.StatusRequest{}).GetRun().GetProblem(), "waits to prepare child workflows")
		})
	}
	all.signal(nil)
	for _, task := range []string{"each[3]", "each[31]", "each[32]", "each[70]"} {
		if err := some.update(names.CancelTaskUpdate, &v1.TaskCommand{Task: task}); err != nil {
			t.Error(err)
		}
	}
	bringBack()
	want(t, all.wait(), "cancelled", map[string]string{"each": "cancelled", "open": "cancelled"})
	c.fake.Release("held")
	if counts := some.wait().GetTasks()["each"].GetCounts(); counts["completed"] != 76 || counts["cancelled"] != 4 || c.calls()["a"] != 76 {
		t.Errorf("each: %v, %d children have run", counts, c.calls()["a"])
	}
	for _, i := range some.page(some.id, &v1.InstancesRequest{Task: "each", Limit: 80}).GetInstances() {
		if i.GetState() != "completed" {
			continue
		}
		child := &handle{workerSet: c, id: i.GetChildRun(), run: c.conn.GetWorkflow(t.Context(), i.GetChildRun(), "")}
		if n := child.wait().GetInput().GetFields()["n"].GetNumberValue(); n != float64(i.GetIndex()) {
			t.Errorf("the child of each[%d] was given %v", i.GetIndex(), n)
		}
	}
	eventually(t, "nothing is left", func() bool { return y.openWorkflows(t, names.RunWorkflow) == 0 })
}
