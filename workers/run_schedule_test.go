package workers

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/library"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// trigger makes Temporal start a stored workflow, as a schedule or a user of its Web UI does, and returns the run.
func (c *workerSet) trigger(document string) *handle {
	c.t.Helper()
	def, err := definition.Parse("stored.yaml", []byte(document))
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := library.New(c.conn, c.conn.Namespace).Put(c.t.Context(), def, nil, false); err != nil {
		c.t.Fatal(err)
	}
	schedule := c.conn.ScheduleClient().GetHandle(c.t.Context(), names.StoredWorkflowID(def.GetName()))
	if err := schedule.Trigger(c.t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		c.t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < limit; time.Sleep(50 * time.Millisecond) {
		described, err := schedule.Describe(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if actions := described.Info.RecentActions; len(actions) > 0 {
			id := actions[0].StartWorkflowResult.WorkflowID
			return &handle{workerSet: c, id: id, run: c.conn.GetWorkflow(c.t.Context(), id, "")}
		}
	}
	c.t.Fatalf("nothing has started %s", def.GetName())
	return nil
}

// TestRunOfScheduleHasInputDefaults checks that a run that Temporal itself starts gets the defaults of its inputs, and
// a valid ID.
func TestRunOfScheduleHasInputDefaults(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	name := names.NewRunID("Elt_pipeline")
	h := c.trigger(strings.Replace(c.childDefinition(name, "only", `inputs: {kind: {default: plain}, n: {type: integer, default: 3}},`),
		"command: x}", `command: x}, env: {KIND: "${{ workflow.input.kind }}"}, condition: workflow.input.n == 3`, 1))
	want(t, h.wait(), "completed", map[string]string{"only": "completed"})
	if kinds := c.seen("only", "KIND"); len(kinds) != 1 || kinds[0] != "plain" {
		t.Errorf("the input was %v", kinds)
	}
	if got := h.attributes(); got.Workflow != name || got.Trigger != v1.TriggerSchedule || got.Submitted.IsZero() {
		t.Errorf("search attributes of %s: %+v", h.id, got)
	}
	if err := storekey.Check(storekey.Status(h.id, 0)); err != nil {
		t.Error(err)
	}

	h = c.trigger(c.childDefinition(names.NewRunID("asks"), "only", `inputs: {who: {required: true}},`))
	if err := h.run.Get(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "input who is missing") {
		t.Errorf("without its input, the run has ended with %v", err)
	}
}
