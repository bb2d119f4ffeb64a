package run_test

import (
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// triggerSchedule makes Temporal start a stored workflow, as a schedule or a user of its Web UI does, and returns the
// run.
func triggerSchedule(c *workertest.Nodes, document string) *workertest.Handle {
	c.T.Helper()
	def, err := definition.Parse("stored.yaml", []byte(document))
	if err != nil {
		c.T.Fatal(err)
	}
	storeWorkflow(c, def)
	schedule := c.Conn.ScheduleClient().GetHandle(c.T.Context(), names.StoredWorkflowID(def.GetName()))
	if err := schedule.Trigger(c.T.Context(), client.ScheduleTriggerOptions{}); err != nil {
		c.T.Fatal(err)
	}
	id := ""
	workertest.Eventually(c.T, "the schedule starts "+def.GetName(), func() bool {
		described, err := schedule.Describe(c.T.Context())
		if err != nil {
			c.T.Fatal(err)
		}
		if actions := described.Info.RecentActions; len(actions) > 0 {
			id = actions[0].StartWorkflowResult.WorkflowID
		}
		return id != ""
	})
	return &workertest.Handle{Nodes: c, ID: id, Workflow: c.Conn.GetWorkflow(c.T.Context(), id, "")}
}

// TestRunOfScheduleHasInputDefaults checks that a run that Temporal itself starts gets the defaults of its inputs, and
// a valid ID.
func TestRunOfScheduleHasInputDefaults(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	name := names.NewRunID("Elt_pipeline")
	h := triggerSchedule(c, strings.Replace(childDefinition(c, name, "only", `inputs: {kind: {default: plain}, n: {type: integer, default: 3}},`),
		"command: x}", `command: x}, env: {KIND: "${{ workflow.input.kind }}"}, condition: workflow.input.n == 3`, 1))
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"only": "completed"})
	if kinds := valuesSeen(c, "only", "KIND"); len(kinds) != 1 || kinds[0] != "plain" {
		t.Errorf("the input was %v", kinds)
	}
	if got := searchAttributes(h); got.Workflow != name || got.Trigger != v1.TriggerSchedule || got.Submitted.IsZero() {
		t.Errorf("search attributes of %s: %+v", h.ID, got)
	}
	if err := storekey.Check(storekey.Status(h.ID, 0)); err != nil {
		t.Error(err)
	}
}
