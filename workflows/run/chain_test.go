package run_test

import (
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

const countedRun = `{name: counted, tasks: {a: {type: shell, spec: {command: x}},
	b: {type: shell, spec: {command: x}, dependsOn: [a], condition: "parent.a.output.n != ''"}}}`

// checkCounted checks the run of countedRun, and that everything it has stored is below its chains.
func checkCounted(t *testing.T, h *workertest.Handle, n string, chains ...string) {
	t.Helper()
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"a": "completed", "b": "completed"})
	if got := run.GetTasks()["a"].GetResult().GetOutput().GetFields()["n"].GetStringValue(); got != n {
		t.Errorf("the output is that of attempt %s of all, want %s", got, n)
	}
	if text := printedBy(h, "a"); !strings.Contains(text, "line "+n) {
		t.Errorf("the log of a: %q", text)
	}
	for key, err := range h.Store.Keys(t.Context(), storekey.RunPrefix(h.ID)) {
		if err != nil {
			t.Fatal(err)
		}
		below := false
		for _, chain := range chains {
			below = below || strings.HasPrefix(key, storekey.RunPrefix(names.Home(h.ID, chain)))
		}
		if !below {
			t.Errorf("key %s is below none of %v", key, chains)
		}
	}
}

var counting = []fake.Step{{Output: "n=1", Stdout: "line 1\n"}, {Output: "n=2", Stdout: "line 2\n"}}

// TestRunWithReusedIDStartsAnew checks that a run that reuses an ID, such as after the retention or a deletion in
// Temporal, reads none of the earlier run's values.
func TestRunWithReusedIDStartsAnew(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": counting})
	c.Start("n")
	in := c.Input(countedRun)
	first := c.Submit(in)
	checkCounted(t, first, "1", first.Chain)
	run, err := c.Conn.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: first.ID, TaskQueue: names.ControlQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, names.RunWorkflow, in)
	if err != nil {
		t.Fatal(err)
	}
	second := &workertest.Handle{Nodes: c, ID: first.ID, Workflow: run, Chain: run.GetRunID()}
	checkCounted(t, second, "2", first.Chain, second.Chain)
	if n := c.Calls()["a"]; n != 2 {
		t.Errorf("a ran %d times", n)
	}
}

// TestResetRunRepeatsLaterSteps checks that a reset run repeats the later steps instead of using their earlier results.
func TestResetRunRepeatsLaterSteps(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": counting})
	c.Start("n")
	first := c.Submit(c.Input(countedRun))
	checkCounted(t, first, "1", first.Chain)
	reset := resetRun(first, firstWorkflowTask(first))
	checkCounted(t, reset, "2", first.Chain, reset.Chain)

	// A new generation of the reset run starts from the values of the reset run.
	again := reset.Rerun(c.Input(countedRun), 1, &historyv1.Rerun{From: []string{"b"}})
	checkCounted(t, again, "2", first.Chain, reset.Chain)
}
