package workers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// inParts makes children carry fan-outs of more than 5 instances, 4 instances each.
var inParts = limits.Run{Instances: 5, PartitionInstances: 4}

// page queries a workflow for a page of instances.
func (h *handle) page(id string, req *v1.InstancesRequest) *v1.InstancesResponse {
	h.t.Helper()
	var res v1.InstancesResponse
	h.query(id, names.InstancesQuery, req, &res)
	return &res
}

// TestLargeFanOut checks that a large fan-out, which children of the run carry, looks like any other from outside.
func TestLargeFanOut(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{
		"discover": {{Output: `{"files": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]}`, ContextUpdate: "listed=1"}},
		"each":     {{Output: "done=1", ContextUpdate: "seen=1"}},
		"plain":    {{}},
	})
	c.start("n")
	h := c.submit(c.input(`{name: large, maxParallel: 20, tasks: {
		discover: {type: shell, spec: {command: x}},
		each: {type: shell, dependsOn: [discover], foreach: "discover.files", env: {WHAT: "${{ input.item }} ${{ parent.discover.exitCode }} ${{ workflow.context.listed }}"}, spec: {command: x}},
		plain: {type: shell, parallel: 6, batch: 2, spec: {command: x}},
		after: {type: shell, dependsOn: [each, plain], spec: {command: x},
			condition: "parent.each.count == 10 && parent.each.outputs.all(o, o.done == '1') && parent.plain.completed == 6 && parent.plain.exitCode == 0 && workflow.context.seen == '1'"}}}`))
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed", "plain": "completed", "after": "completed"})
	each := run.Tasks["each"]
	if each.GetCount() != 10 || fmt.Sprint(each.GetCounts()) != "map[completed:10]" || len(each.GetInstances()) != 0 {
		t.Errorf("each: %v", each)
	}
	if got := fmt.Sprint(c.seen("each", "WHAT")); got != "[a 0 1 b 0 1 c 0 1 d 0 1 e 0 1 f 0 1 g 0 1 h 0 1 i 0 1 j 0 1]" {
		t.Errorf("instances saw %s", got)
	}
	number, child := int32(0), ""
	for number < 10 {
		res := h.page(h.id, &v1.InstancesRequest{Task: "each", From: number})
		child = res.GetChild()
		for _, i := range h.page(child, &v1.InstancesRequest{Task: "each", From: number}).GetInstances() {
			if i.GetIndex() != number || i.GetState() != "completed" || i.GetNode() == "" {
				t.Fatalf("instance %d: %v", number, i)
			}
			number++
		}
	}
	replay(t, "parts", inParts, h.history(""))
	replay(t, "part", inParts, (&handle{workerSet: c, id: child}).history(""))
}

// TestContextOfALargeFanOut checks that an instance fails, as a task does, if the run's context has no room for its
// update. No update is lost.
func TestContextOfALargeFanOut(t *testing.T) {
	t.Parallel()
	const instances, fit = 10, 8 // of 30 KiB each, in the 256 KiB limit of a context
	var each []fake.Step
	for i := range instances {
		each = append(each, fake.Step{ContextUpdate: fmt.Sprintf("k%d=%s", i, strings.Repeat("x", 30<<10))})
	}
	c := own(t, ControlConfig{limits: inParts}).workers(t, script{"each": each})
	c.start("n")
	run := c.do(`{name: large, tasks: {each: {type: shell, spec: {command: x}, parallel: 10}}}`)
	want(t, run, "failed", map[string]string{"each": "failed instances"})
	task := run.Tasks["each"]
	if counts := task.GetCounts(); counts["completed"] != fit || counts["failed"] != instances-fit {
		t.Errorf("instances %v", counts)
	}
	if !strings.Contains(task.GetError(), "the context would grow to 27") {
		t.Errorf("each: %s", task.GetError())
	}
	if n := len(run.GetContext().GetFields()); n != fit {
		t.Errorf("the context has %d keys, want those of the %d instances that completed", n, fit)
	}
}

// TestLargeFanOutFails checks that failures in one part halt the other parts.
func TestLargeFanOutFails(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{"each": {fake.Exit(3)}, "some": {fake.Exit(4), {}}})
	c.start("n")
	run := c.do(`{name: large, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 40, concurrency: 1, maxFailures: 2, retry: {maxRetries: 0}},
		some: {type: shell, spec: {command: x}, parallel: 12, concurrency: 1, maxFailures: 1, retry: {maxRetries: 0}},
		below: {type: shell, spec: {command: x}, dependsOn: [each]}}}`)
	want(t, run, "failed", map[string]string{"each": "failed instances", "some": "completed", "below": "skipped upstream"})
	each := run.Tasks["each"]
	if n := c.calls()["each"]; n != 3 || each.GetCounts()["failed"] != 3 || each.GetCounts()["skipped"] != 37 {
		t.Errorf("%d ran: %v", n, each)
	}
	if each.GetError() != "3 of 40 instances failed: each[0]: exit code 3" || each.GetResult().GetExitCode() != 3 {
		t.Errorf("each: %v", each)
	}
}

// TestEndsOfALargeFanOutReachATask checks that downstream tasks get the end states of the instances of a large fan-out,
// and that its instances get those of upstream tasks.
func TestEndsOfALargeFanOutReachATask(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, nil)
	c.start("n", withShell(t))
	result := filepath.Join(t.TempDir(), "input")
	run := c.do(`
name: large
defaults: { type: shell, retry: { maxRetries: 0 } }
tasks:
  broken: { spec: { command: exit 4 } }
  each:
    dependsOn: [broken]
    when: always
    foreach: [a, b, c, d, e, f, g, h, i, j]
    maxFailures: 2
    spec: { command: 'grep -q "\"broken\":{.*\"state\":\"failed\"}" "$SWITCHYARD_INPUT" && case $SWITCHYARD_ITEM in [bcj]) exit 3;; esac' }
  tell: { dependsOn: [each], when: always, spec: { command: 'cat "$SWITCHYARD_INPUT" >"$RESULT"' }, env: { RESULT: "` + result + `" } }
`)
	want(t, run, "failed", map[string]string{"each": "failed instances", "tell": "completed"})
	data, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Each      []any
		Ancestors map[string]struct {
			Failed    int
			Instances []struct{ State, Item string }
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	each := got.Ancestors["each"]
	shown := fmt.Sprint(each.Instances)
	if want := "[{completed a} {failed b} {failed c} {completed d} {completed e} {completed f} {completed g} {completed h} {completed i} {failed j}]"; shown != want || each.Failed != 3 {
		t.Errorf("%d failed: %s, want %s", each.Failed, shown, want)
	}
	if fmt.Sprint(got.Each) != "[map[] <nil> <nil> map[] map[] map[] map[] map[] map[] <nil>]" {
		t.Errorf("outputs %v", got.Each)
	}
}

// TestInstanceOfALargeFanOutIsCancelled checks that a cancelled instance is a failure of the task, as in a small
// fan-out.
func TestInstanceOfALargeFanOutIsCancelled(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{"each": {{Block: true}, {}}})
	c.start("n")
	h := c.submit(c.input(`{name: large, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 6, concurrency: 1},
		below: {type: shell, spec: {command: x}, dependsOn: [each]}}}`))
	c.running("each")
	child := h.child(0, "each", 0)
	if err := child.update(names.CancelTaskUpdate, &v1.TaskCommand{Task: "each[0]"}); err != nil {
		t.Fatal(err)
	}
	run := h.wait()
	want(t, run, "failed", map[string]string{"each": "failed instances", "below": "skipped upstream"})
	if each := run.Tasks["each"]; each.GetCounts()["cancelled"] != 1 || each.GetError() != "1 of 6 instances were cancelled" {
		t.Errorf("each: %v", each)
	}
}

// TestLargeFanOutIsCancelled checks that cancelling or terminating a run also ends its parts.
func TestLargeFanOutIsCancelled(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	for name, end := range map[string]func(*handle){
		"cancelled": func(h *handle) { h.signal(nil) },
		"terminated": func(h *handle) {
			if err := h.conn.TerminateWorkflow(h.t.Context(), h.id, "", "test"); err != nil {
				h.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := y.workers(t, script{"each": {{}, {Block: true}}})
			c.start("n")
			h := c.submit(c.input(`{name: large, tasks: {each: {type: shell, spec: {command: x}, parallel: 12}}}`))
			c.running("each")
			child := h.child(0, "each", 4)
			end(h)
			if name == "terminated" {
				c.fake.Release("each") // the part learns of the end when it reports
			} else {
				want(t, h.wait(), "cancelled", map[string]string{"each": "cancelled"})
			}
			if !child.closed() {
				t.Error("a part is still open")
			}
		})
	}
}

// TestLargeFanOutAcrossContinueAsNew checks that run and parts continue as new, and that parts outlive executions of
// the run.
func TestLargeFanOutAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	limits := inParts
	limits.HistoryEvents, limits.HardHistoryEvents, limits.PartitionInstances = 60, 60, 20
	y := own(t, ControlConfig{limits: limits})
	var each []fake.Step
	for i := range 60 {
		each = append(each, fake.Step{Duration: 30 * time.Millisecond, Output: "n=1", ContextUpdate: fmt.Sprintf("k%02d=1", i)})
	}
	c := y.workers(t, script{"each": each})
	c.start("n")
	document := "{name: large, tasks: {each: {type: shell, spec: {command: x}, parallel: 60, concurrency: 4}"
	for i := range 12 {
		document += fmt.Sprintf(", c%02d: {type: shell, spec: {command: x}", i)
		if i > 0 {
			document += fmt.Sprintf(", dependsOn: [c%02d]", i-1)
		}
		document += "}"
	}
	h := c.submit(c.input(document + `, after: {type: shell, spec: {command: x}, dependsOn: [each], condition: "size(parent.each.outputs) == 60 && parent.each.outputs.all(o, o.n == '1')"}}}`))
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	child := h.child(0, "each", 0)
	if n := len(run.GetContext().GetFields()); n != 60 {
		t.Errorf("the context of the run has %d keys", n)
	}
	if n := c.calls()["each"]; n != 60 || len(h.executions()) < 2 || len(child.executions()) < 2 {
		t.Errorf("%d calls, %d executions of the run and %d of a part", n, len(h.executions()), len(child.executions()))
	}
}

// TestHaltedLargeFanOutAcrossContinueAsNew checks that no instance of a large fan-out starts after its run has halted,
// even when the run continues as new.
func TestHaltedLargeFanOutAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	limits := inParts
	limits.HistoryEvents = 30
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"each": {{Block: true}}, "bad": {{Block: true, Result: fake.Exit(1).Result}}})
	c.start("n")
	def := chainBeside(8, map[string]*v1.TaskDefinition{"each": shellTask(), "bad": shellTask("t07")})
	def.FailurePolicy = "halt"
	def.Tasks["bad"].Retry = &v1.RetryPolicy{MaxRetries: new(int32)}
	def.Tasks["each"].Parallel, def.Tasks["each"].Concurrency = structpb.NewNumberValue(12), 2
	h := c.submit(c.inputOf(def))
	c.running("bad")
	eventually(t, "both parts have begun", func() bool { return c.calls()["each"] == 2 })
	c.fake.Release("bad")
	h.until("bad", func(x *v1.Task) bool { return x.GetState() == "failed" })
	eventually(t, "the run has continued as new", func() bool { return len(h.executions()) > 1 })
	h.until("each", func(x *v1.Task) bool { return x.GetCounts()["skipped"] == 6 }) // of the two open parts
	c.fake.Release("each")
	want(t, h.wait(), "failed", map[string]string{"bad": "failed", "each": "skipped halt"})
	if n := c.calls()["each"]; n != 2 {
		t.Errorf("%d instances have started", n)
	}
}
