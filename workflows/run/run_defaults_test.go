package run_test

import (
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

// TestRunDefaultsHoldWithoutGateway checks that the fleet's defaults apply to a run that Temporal starts by the name of its
// workflow.
func TestRunDefaultsHoldWithoutGateway(t *testing.T) {
	t.Parallel()
	c := workertest.Own(t, workers.ControlConfig{Defaults: definition.RunDefaults{Timeout: time.Hour, FailurePolicy: "halt", PickupTimeout: 20 * time.Second}}).Nodes(t, nil)
	c.Start("n")
	h := startByName(c, names.NewRunID("byname"), map[string]any{"workflow": storeChildWorkflow(c, "only", "")})
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"only": "completed"})
	in := startedInput(h)
	if in.GetDefinition().GetFailurePolicy() != "halt" || in.GetDefinition().GetTasks()["only"].GetTimeout() != "1h0m0s" || in.GetOptions().GetPickupTimeout().AsDuration() != 20*time.Second {
		t.Errorf("the run has started with %v", in)
	}
}
