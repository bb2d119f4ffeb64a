package workers

import (
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// startedWith returns the input of the newest execution of a run.
func (h *handle) startedWith() *v1.RunInput {
	h.t.Helper()
	in := &v1.RunInput{}
	if err := converter.GetDefaultDataConverter().FromPayloads(h.history("")[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), in); err != nil {
		h.t.Fatal(err)
	}
	return in
}

// TestRunDefaultsHoldWithoutGateway checks that the fleet's defaults apply to runs that no gateway starts: one that
// Temporal starts by the name of its workflow, and child runs, by name and with a definition.
func TestRunDefaultsHoldWithoutGateway(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{Defaults: definition.RunDefaults{Timeout: time.Hour, FailurePolicy: "halt", PickupTimeout: 20 * time.Second}})
	c := y.workers(t, nil)
	c.start("n")
	def, err := definition.Parse("stored.yaml", fmt.Appendf(nil, `{name: %s, tasks: {
		named: {type: run, spec: {workflow: %s}}, inline: {type: run, spec: {definition: %s}}}}`,
		names.NewRunID("outer"), c.keep("only", ""), c.childDefinition("inner", "only", "")))
	if err != nil {
		t.Fatal(err)
	}
	c.put(def)
	h := c.startByName(names.NewRunID("byname"), map[string]any{"workflow": def.GetName()})
	run := h.wait()
	want(t, run, "completed", map[string]string{"named": "completed", "inline": "completed"})
	runs := map[string]*handle{"the run": h}
	for _, task := range []string{"named", "inline"} {
		id := run.GetTasks()[task].GetChildRun()
		runs["the run of "+task] = &handle{workerSet: c, id: id, run: c.conn.GetWorkflow(t.Context(), id, "")}
	}
	for what, h := range runs {
		in := h.startedWith()
		if in.GetDefinition().GetFailurePolicy() != "halt" || in.GetOptions().GetPickupTimeout().AsDuration() != 20*time.Second {
			t.Errorf("%s has the failure policy %q and the options %v", what, in.GetDefinition().GetFailurePolicy(), in.GetOptions())
		}
		if task := in.GetDefinition().GetTasks()["only"]; task != nil && task.GetTimeout() != "1h0m0s" {
			t.Errorf("%s has a task with the time-out %q", what, task.GetTimeout())
		}
	}
}
