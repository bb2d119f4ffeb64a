package run_test

import (
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// startedInput returns the input of the newest execution of a run.
func startedInput(h *workertest.Handle) *historyv1.RunInput {
	h.T.Helper()
	in := &historyv1.RunInput{}
	if err := converter.GetDefaultDataConverter().FromPayloads(h.History("")[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), in); err != nil {
		h.T.Fatal(err)
	}
	return in
}

// TestRunDefaultsHoldWithoutGateway checks that the fleet's defaults apply to runs that no gateway starts: one that
// Temporal starts by the name of its workflow, and child runs, by name and with a definition.
func TestRunDefaultsHoldWithoutGateway(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{Defaults: definition.RunDefaults{Timeout: time.Hour, FailurePolicy: "halt", PickupTimeout: 20 * time.Second}})
	c := y.Nodes(t, nil)
	c.Start("n")
	def, err := definition.Parse("stored.yaml", fmt.Appendf(nil, `{name: %s, tasks: {
		named: {type: run, spec: {workflow: %s}}, inline: {type: run, spec: {definition: %s}}}}`,
		names.NewRunID("outer"), storeChildWorkflow(c, "only", ""), childDefinition(c, "inner", "only", "")))
	if err != nil {
		t.Fatal(err)
	}
	storeWorkflow(c, def)
	h := startByName(c, names.NewRunID("byname"), map[string]any{"workflow": def.GetName()})
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"named": "completed", "inline": "completed"})
	runs := map[string]*workertest.Handle{"the run": h}
	for _, task := range []string{"named", "inline"} {
		id := run.GetTasks()[task].GetChildRun()
		runs["the run of "+task] = &workertest.Handle{Nodes: c, ID: id, Workflow: c.Conn.GetWorkflow(t.Context(), id, "")}
	}
	for what, h := range runs {
		in := startedInput(h)
		if in.GetDefinition().GetFailurePolicy() != "halt" || in.GetOptions().GetPickupTimeout().AsDuration() != 20*time.Second {
			t.Errorf("%s has the failure policy %q and the options %v", what, in.GetDefinition().GetFailurePolicy(), in.GetOptions())
		}
		if task := in.GetDefinition().GetTasks()["only"]; task != nil && task.GetTimeout() != "1h0m0s" {
			t.Errorf("%s has a task with the time-out %q", what, task.GetTimeout())
		}
	}
}
