package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
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
	const one = `{name: cancel, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 5, backoffMs: 60000}},
		b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`
	runs := workertest.Script{"a": {{Block: true}}}
	whileItRuns := func(h *workertest.Handle) { h.AwaitRunning("a") }
	for name, test := range map[string]struct {
		script   workertest.Script
		document string
		nodes    bool
		when     func(*workertest.Handle)
		cancel   func(*workertest.Handle)
		tasks    map[string]string
	}{
		"by Temporal":               {runs, one, true, whileItRuns, byTemporal, nil},
		"by signal":                 {runs, one, true, whileItRuns, func(h *workertest.Handle) { h.Cancel(nil) }, nil},
		"twice":                     {runs, one, true, whileItRuns, func(h *workertest.Handle) { h.Cancel(nil); h.Cancel(1); byTemporal(h) }, nil},
		"before anything is placed": {nil, one, false, func(*workertest.Handle) {}, byTemporal, nil},
		"while it waits for a node": {nil, one, false, func(h *workertest.Handle) {
			h.AwaitTask("a", func(a *v1.Task) bool { return a.GetState() == "queued" && a.GetError() != "" })
		}, func(h *workertest.Handle) { h.Cancel(nil) }, nil},
		"during a back-off": {workertest.Script{"a": {{Result: workertest.OutOfMemory()}}}, one, true, func(h *workertest.Handle) {
			h.AwaitTask("a", func(a *v1.Task) bool { return a.GetScheduledAfter() != nil })
		}, func(h *workertest.Handle) { h.Cancel(nil) }, nil},
		"what is done stays done": {workertest.Script{"b": {{Block: true}}}, one, true, func(h *workertest.Handle) { h.AwaitRunning("b") },
			func(h *workertest.Handle) { h.Cancel(nil) }, map[string]string{"a": "completed", "b": "cancelled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, test.script)
			if test.nodes {
				c.Start("a")
			}
			h := c.Submit(c.Input(test.document))
			test.when(h)
			asked := time.Now()
			test.cancel(h)
			run := h.Wait()
			tasks := test.tasks
			if tasks == nil {
				tasks = map[string]string{"a": "cancelled", "b": "cancelled run_cancelled"}
			}
			workertest.CheckRun(t, run, "cancelled", tasks)
			if took := time.Since(asked); took > workertest.Soon {
				t.Errorf("took %v", took)
			}
			d := workertest.Describe(c.T, c.Conn, h.ID, "")
			if s := d.GetWorkflowExecutionInfo().GetStatus().String(); s != "Canceled" || run.GetReason() != "cancelled" {
				t.Errorf("Temporal shows %s, the reason is %q", s, run.GetReason())
			}
		})
	}
}

// TestCancelEndsTasksThatAreBeingPlaced checks that a cancel also ends tasks that are being given to nodes at that
// moment, started or not.
func TestCancelEndsTasksThatAreBeingPlaced(t *testing.T) {
	t.Parallel()
	def := &v1.Definition{Name: "once", Tasks: map[string]*v1.TaskDefinition{}}
	s := workertest.Script{}
	for i := range 20 {
		name := fmt.Sprintf("t%d", i)
		def.Tasks[name], s[name] = workertest.ShellTask(), []fake.Step{{Block: true}}
	}
	c := workertest.Shared(t).Nodes(t, s)
	c.Start("a")
	c.Do(`{name: warm, tasks: {x: {type: shell, spec: {command: x}}}}`)
	for range 10 {
		h := c.Submit(c.InputOf(def))
		h.Cancel(nil)
		asked := time.Now()
		workertest.CheckRun(t, h.Wait(), "cancelled", map[string]string{"t0": "cancelled", "t19": "cancelled"})
		if took := time.Since(asked); took > workertest.Soon {
			t.Fatalf("took %v", took)
		}
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
	child := &workertest.Handle{Nodes: c, ID: h.AwaitTask("child", func(x *v1.Task) bool { return x.GetState() == "running" }).GetChildRun()}
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
	inner := child.Status(&historyv1.StatusRequest{}).GetRun()
	if got := inner.GetError(); !child.AwaitEnd() || !strings.Contains(got, "with task child of run "+h.ID) || !strings.HasSuffix(got, text) {
		t.Errorf("the child run says %q", got)
	}
	events := storedEvents(h, 0)
	if first, last := events[0], events[len(events)-1]; first.GetDetail() != "by bob" || last.GetEvent() != "cancelled" || last.GetTask() != "" || last.GetDetail() != text ||
		last.GetData().GetFields()["by"].GetStringValue() != "ann" {
		t.Errorf("the events say %v, %v", first, last)
	}
}
