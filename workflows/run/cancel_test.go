package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
)

func TestCancelEndsOpenTasks(t *testing.T) {
	t.Parallel()
	byTemporal := func(h *workertest.Handle) {
		if err := h.Conn.CancelWorkflow(h.T.Context(), h.ID, ""); err != nil {
			h.T.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		runs   bool // the first task
		cancel func(*workertest.Handle)
	}{
		"by Temporal":               {true, byTemporal},
		"twice":                     {true, func(h *workertest.Handle) { h.Cancel(nil); h.Cancel(1); byTemporal(h) }},
		"before anything is placed": {false, byTemporal},
		"while it waits for a node": {false, func(h *workertest.Handle) {
			h.AwaitTask("a", func(a *v1.Task) bool { return a.GetState() == "queued" && a.GetError() != "" })
			h.Cancel(nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}})
			if test.runs {
				c.Start("a")
			}
			h := c.Submit(c.Input(`{name: cancel, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`))
			if test.runs {
				c.AwaitRunning("a")
			}
			asked := time.Now()
			test.cancel(h)
			run := h.Wait()
			workertest.CheckRun(t, run, "cancelled", map[string]string{"a": "cancelled", "b": "cancelled run_cancelled"})
			if took := time.Since(asked); took > workertest.Soon {
				t.Errorf("took %v", took)
			}
			if s := describeRun(h).GetWorkflowExecutionInfo().GetStatus().String(); s != "Canceled" || run.GetReason() != "cancelled" {
				t.Errorf("Temporal shows %s, the reason is %q", s, run.GetReason())
			}
		})
	}
}

// TestCancelReasonIsShownEverywhere checks that the run, its event, its tasks, its partitions and its child runs show
// who cancelled the run and why.
func TestCancelReasonIsShownEverywhere(t *testing.T) {
	t.Parallel()
	c := workertest.SharedWithin(t, inPartitions).Nodes(t, workertest.Script{"each": {{Block: true}}, "a": {{Block: true}}, "in": {{Block: true}}})
	c.Start("n")
	in := c.Input(fmt.Sprintf(`{name: reason, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]},
		each: {type: shell, spec: {command: x}, parallel: 6}, child: {type: run, spec: {definition: %s}}}}`, childDefinition(c, "inner", "in", "")))
	in.By = "bob"
	h := c.Submit(in)
	c.AwaitRunning("a")
	c.AwaitRunning("each")
	c.AwaitRunning("in")
	child := childRun(c, h.AwaitTask("child", func(x *v1.Task) bool { return x.GetState() == "running" }))
	part := h.Partition(0, "each", 0)
	h.Cancel(&historyv1.RunCommand{Reason: "too slow", By: "ann"})
	run := h.Wait()
	workertest.CheckRun(t, run, "cancelled", map[string]string{"a": "cancelled run_cancelled", "b": "cancelled run_cancelled", "each": "cancelled", "child": "cancelled"})
	const text = "cancelled by ann: too slow"
	if run.GetError() != text || run.GetSubmittedBy() != "bob" {
		t.Errorf("the run says %q, submitted by %q", run.GetError(), run.GetSubmittedBy())
	}
	for _, task := range []string{"a", "b", "each", "child"} {
		if got := run.GetTasks()[task].GetError(); got != text {
			t.Errorf("%s says %q", task, got)
		}
	}
	for _, i := range instancesPage(part, part.ID, &historyv1.InstancesRequest{Task: "each"}).GetInstances() {
		if i.GetError() != text {
			t.Errorf("instance %d says %q", i.GetIndex(), i.GetError())
		}
	}
	if got := child.Wait().GetError(); !strings.Contains(got, "with task child of run "+h.ID) || !strings.HasSuffix(got, text) {
		t.Errorf("the child run says %q", got)
	}
	events := storedEvents(h, 0)
	if first, last := events[0], events[len(events)-1]; first.GetDetail() != "by bob" || last.GetEvent() != "cancelled" || last.GetTask() != "" || last.GetDetail() != text ||
		last.GetData().GetFields()["by"].GetStringValue() != "ann" {
		t.Errorf("the events say %v, %v", first, last)
	}
}
