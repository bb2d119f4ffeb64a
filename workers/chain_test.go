package workers

import (
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const countedRun = `{name: counted, tasks: {a: {type: shell, spec: {command: x}},
	b: {type: shell, spec: {command: x}, dependsOn: [a], condition: "parent.a.output.n != ''"}}}`

// checkCounted checks the run of countedRun, and that everything it has stored is below its chains.
func checkCounted(t *testing.T, h *handle, n string, chains ...string) {
	t.Helper()
	run := h.wait()
	want(t, run, "completed", map[string]string{"a": "completed", "b": "completed"})
	if got := run.GetTasks()["a"].GetResult().GetOutput().GetFields()["n"].GetStringValue(); got != n {
		t.Errorf("the output is that of attempt %s of all, want %s", got, n)
	}
	if text := h.printed("a"); !strings.Contains(text, "line "+n) {
		t.Errorf("the log of a: %q", text)
	}
	for key, err := range h.store.Keys(t.Context(), storekey.RunPrefix(h.id)) {
		if err != nil {
			t.Fatal(err)
		}
		below := false
		for _, chain := range chains {
			below = below || strings.HasPrefix(key, storekey.RunPrefix(names.Home(h.id, chain)))
		}
		if !below {
			t.Errorf("key %s is below none of %v", key, chains)
		}
	}
}

var counting = []fake.Step{{Output: "n=1", Stdout: "line 1\n"}, {Output: "n=2", Stdout: "line 2\n"}}

// TestRunIDUsedAgainStartsAnew checks that a run that reuses an ID, such as after the retention or a deletion in
// Temporal, reads none of the earlier run's values.
func TestRunIDUsedAgainStartsAnew(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": counting})
	c.start("n")
	in := c.input(countedRun)
	first := c.submit(in)
	checkCounted(t, first, "1", first.chain)
	run, err := c.conn.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: first.id, TaskQueue: names.ControlQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, names.RunWorkflow, in)
	if err != nil {
		t.Fatal(err)
	}
	second := &handle{workerSet: c, id: first.id, run: run, chain: run.GetRunID()}
	checkCounted(t, second, "2", first.chain, second.chain)
	if n := c.calls()["a"]; n != 2 {
		t.Errorf("a ran %d times", n)
	}
}

// TestResetRunStartsAnew checks that a reset run repeats the later steps instead of using their earlier results.
func TestResetRunStartsAnew(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": counting})
	c.start("n")
	first := c.submit(c.input(countedRun))
	checkCounted(t, first, "1", first.chain)
	reset := first.reset(first.firstTask())
	checkCounted(t, reset, "2", first.chain, reset.chain)

	// A new generation of the reset run starts from the values of the reset run.
	again := reset.anew(c.input(countedRun), 1, &v1.Rerun{From: []string{"b"}})
	checkCounted(t, again, "2", first.chain, reset.chain)
}
