package workers

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
)

// soon bounds the time of a cancel. It far exceeds the usual time (well below a second), and is far below the time
// after which the run would end otherwise.
const soon = 30 * time.Second

func TestCancel(t *testing.T) {
	t.Parallel()
	byTemporal := func(h *handle) {
		if err := h.conn.CancelWorkflow(h.t.Context(), h.id, ""); err != nil {
			h.t.Fatal(err)
		}
	}
	const one = `{name: cancel, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 5, backoffMs: 60000}},
		b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`
	runs := script{"a": {{Block: true}}}
	whileItRuns := func(h *handle) { h.running("a") }
	for name, test := range map[string]struct {
		script   script
		document string
		nodes    bool
		when     func(*handle)
		cancel   func(*handle)
		tasks    map[string]string
	}{
		"by Temporal":               {runs, one, true, whileItRuns, byTemporal, nil},
		"by signal":                 {runs, one, true, whileItRuns, func(h *handle) { h.signal(nil) }, nil},
		"by signal with a reason":   {runs, one, true, whileItRuns, func(h *handle) { h.signal(map[string]string{"reason": "enough"}) }, nil},
		"by signal with a word":     {runs, one, true, whileItRuns, func(h *handle) { h.signal("enough") }, nil},
		"twice":                     {runs, one, true, whileItRuns, func(h *handle) { h.signal(nil); h.signal(1); byTemporal(h) }, nil},
		"before anything is placed": {nil, one, false, func(*handle) {}, byTemporal, nil},
		"while it waits for a node": {nil, one, false, func(h *handle) {
			h.until("a", func(a *v1.Task) bool { return a.GetState() == "queued" && a.GetError() != "" })
		}, func(h *handle) { h.signal(nil) }, nil},
		"during a back-off": {script{"a": {{Result: executorOOM()}}}, one, true, func(h *handle) {
			h.until("a", func(a *v1.Task) bool { return a.GetScheduledAfter() != nil })
		}, func(h *handle) { h.signal(nil) }, nil},
		"what is done stays done": {script{"b": {{Block: true}}}, one, true, func(h *handle) { h.running("b") },
			func(h *handle) { h.signal(nil) }, map[string]string{"a": "completed", "b": "cancelled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared(t).workers(t, test.script)
			if test.nodes {
				c.start("a")
			}
			h := c.submit(c.input(test.document))
			test.when(h)
			asked := time.Now()
			test.cancel(h)
			run := h.wait()
			tasks := test.tasks
			if tasks == nil {
				tasks = map[string]string{"a": "cancelled", "b": "cancelled run_cancelled"}
			}
			want(t, run, "cancelled", tasks)
			if took := time.Since(asked); took > soon {
				t.Errorf("took %v", took)
			}
			d := describe(c.t, c.conn, h.id, "")
			if s := d.GetWorkflowExecutionInfo().GetStatus().String(); s != "Canceled" || run.GetReason() != "cancelled" {
				t.Errorf("Temporal shows %s, the reason is %q", s, run.GetReason())
			}
		})
	}
}

// TestCancelAtOnce checks that a cancel also ends tasks that are being given to nodes at that moment, started or not.
func TestCancelAtOnce(t *testing.T) {
	t.Parallel()
	def := &v1.Definition{Name: "once", Tasks: map[string]*v1.TaskDefinition{}}
	s := script{}
	for i := range 20 {
		name := fmt.Sprintf("t%d", i)
		def.Tasks[name], s[name] = shellTask(), []fake.Step{{Block: true}}
	}
	c := shared(t).workers(t, s)
	c.start("a")
	c.do(`{name: warm, tasks: {x: {type: shell, spec: {command: x}}}}`)
	for range 10 {
		h := c.submit(c.inputOf(def))
		h.signal(nil)
		asked := time.Now()
		want(t, h.wait(), "cancelled", map[string]string{"t0": "cancelled", "t19": "cancelled"})
		if took := time.Since(asked); took > soon {
			t.Fatalf("took %v", took)
		}
	}
}

// TestCancelReasonIsShownEverywhere checks that the run, its event, its tasks, its parts and its child runs show who
// cancelled the run and why, whatever form the signal has.
func TestCancelReasonIsShownEverywhere(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	for name, test := range map[string]struct {
		arg  any
		says string
	}{
		"by the gateway": {&v1.RunCommand{Reason: "too slow", By: "ann"}, "cancelled by ann: too slow"},
		"nobody known":   {&v1.RunCommand{Reason: "too slow\nreally"}, "cancelled: too slow"},
		"by a person":    {map[string]string{"reason": "enough"}, "cancelled: enough"},
		"a word":         {"enough", "cancelled: enough"},
		"something else": {[]int{1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := y.workers(t, script{"each": {{Block: true}}, "a": {{Block: true}}, "in": {{Block: true}}})
			c.start("n")
			in := c.input(fmt.Sprintf(`{name: reason, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]},
				each: {type: shell, spec: {command: x}, parallel: 6}, child: {type: run, spec: {definition: %s}}}}`, c.childDefinition("inner", "in", "")))
			in.By = "bob"
			h := c.submit(in)
			c.running("a")
			c.running("each")
			c.running("in")
			child := &handle{workerSet: c, id: h.until("child", func(x *v1.Task) bool { return x.GetState() == "running" }).GetChildRun()}
			part := h.child(0, "each", 0)
			h.signal(test.arg)
			run := h.wait()
			want(t, run, "cancelled", map[string]string{"a": "cancelled run_cancelled", "b": "cancelled run_cancelled", "each": "cancelled", "child": "cancelled"})
			text := cmp.Or(test.says, "the run was cancelled")
			if run.GetError() != text || run.GetSubmittedBy() != "bob" {
				t.Errorf("the run says %q, submitted by %q", run.GetError(), run.GetSubmittedBy())
			}
			for _, task := range []string{"a", "b", "each", "child"} {
				if got := run.GetTasks()[task].GetError(); got != test.says && (test.says != "" || task != "child") {
					t.Errorf("%s says %q", task, got)
				}
			}
			for _, i := range part.page(part.id, &v1.InstancesRequest{Task: "each"}).GetInstances() {
				if i.GetError() != test.says {
					t.Errorf("instance %d says %q", i.GetIndex(), i.GetError())
				}
			}
			inner := child.status(&v1.StatusRequest{}).GetRun()
			if got := inner.GetError(); !child.closed() || !strings.Contains(got, "with task child of run "+h.id) || !strings.HasSuffix(got, test.says) {
				t.Errorf("the child run says %q", got)
			}
			events := h.stored(0)
			if first, last := events[0], events[len(events)-1]; first.GetDetail() != "by bob" || last.GetEvent() != "cancelled" || last.GetTask() != "" || last.GetDetail() != text {
				t.Errorf("the events say %v, %v", first, last)
			}
			who := ""
			if c, ok := test.arg.(*v1.RunCommand); ok {
				who = c.GetBy()
			}
			if got := events[len(events)-1].GetData().GetFields()["by"].GetStringValue(); got != who {
				t.Errorf("the run was cancelled by %q, want %q", got, who)
			}
		})
	}
}
