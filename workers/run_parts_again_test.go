package workers

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// eightFail returns steps that make all four instances of the first part fail twice, followed by the given steps.
func eightFail(then ...fake.Step) []fake.Step {
	var steps []fake.Step
	for range 8 {
		steps = append(steps, fake.Exit(1))
	}
	return append(steps, then...)
}

// TestRetryOfAnInstanceOfALargeFanOut checks that retrying the dead letter of an instance in a child of the running run
// also lifts the halt of the other instances.
func TestRetryOfAnInstanceOfALargeFanOut(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{"each": eightFail(fake.Step{Output: "n=1"}), "z": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(`{name: letters, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 10, concurrency: 1, maxFailures: 3, retry: {maxRetries: 1, backoffMs: 1}},
		after: {type: shell, spec: {command: x}, dependsOn: [each]},
		z: {type: shell, spec: {command: x}}}}`))
	each := h.until("each", func(x *v1.Task) bool { return x.GetState() == "failed" })
	if got := fmt.Sprint(each.GetCounts()); got != "map[dead_letter:4 skipped:6]" {
		t.Errorf("each: %s", got)
	}
	h.visibleDeadLetters(4)
	wantRefused(t, h.retry("each[7]"), names.TaskStateError, "each[7]")
	wantRefused(t, h.retry("each[10]"), names.UnknownTaskError, "each[10]")
	if err := h.retry("each[1]"); err != nil {
		t.Fatal(err)
	}
	h.until("after", func(x *v1.Task) bool { return x.GetState() == "completed" })
	c.fake.Release("z")
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	if n := c.calls()["each"]; n != 15 || fmt.Sprint(run.Tasks["each"].GetCounts()) != "map[completed:7 dead_letter:3]" {
		t.Errorf("%d executions: %v", n, run.Tasks["each"])
	}
	child := h.child(0, "each", 0)
	res := h.page(child.id, &v1.InstancesRequest{Task: "each", From: 0})
	if one := res.GetInstances()[1]; one.GetState() != "completed" || one.GetAttempt() != 0 || len(one.GetAttempts()) != 3 || res.GetClaims()[1] != 3 {
		t.Errorf("instance 1: %v", one)
	}
	// The events of the part are complete from its first opening on.
	var told []string
	for part := range int32(2) {
		var stored v1.EventSlice
		if err := h.store.GetMessage(t.Context(), storekey.Events(child.home(), 0, part), &stored); err != nil {
			t.Fatal(err)
		}
		for _, e := range stored.GetEvents() {
			if e.GetTask() == "each[1]" {
				told = append(told, e.GetEvent())
			}
		}
	}
	if got := strings.Join(told, " "); !strings.Contains(got, "dead_lettered retried") || !strings.HasSuffix(got, "completed") {
		t.Errorf("events of instance 1: %s", got)
	}
	replay(t, "letters-large", inParts, h.history(""))
	replay(t, "letters-large-part", inParts, child.history(""))
}

// TestRetryOfAnInstanceWhileOthersRun checks that a part that has ended is reopened while other parts of its task run.
func TestRetryOfAnInstanceWhileOthersRun(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{"each": eightFail(fake.Step{Block: true}, fake.Step{})})
	c.start("n")
	h := c.submit(c.input(`{name: letters, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 10, concurrency: 1, maxFailures: 4, retry: {maxRetries: 1, backoffMs: 1}}}}`))
	c.running("each")
	wantRefused(t, h.retry("each[4]"), names.UnknownTaskError, "each[4]") // the run must ask the child
	if err := h.retry("each[3]"); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, h.retry("each[3]"), names.TaskStateError, "each[3]")
	c.fake.Release("each")
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed"})
	if n := c.calls()["each"]; n != 15 || fmt.Sprint(run.Tasks["each"].GetCounts()) != "map[completed:7 dead_letter:3]" {
		t.Errorf("%d executions: %v", n, run.Tasks["each"])
	}
	replay(t, "letters-large-open", inParts, h.history(""))
}

// TestAgainForAnInstanceOfALargeFanOut checks that an ended run continues for a single instance of a child, with its
// item, and that other failures stay as they are.
func TestAgainForAnInstanceOfALargeFanOut(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{
		"discover": {{Output: `{"files": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]}`}},
		"each":     eightFail(fake.Step{})})
	c.start("n")
	in := c.input(`{name: letters, tasks: {
		discover: {type: shell, spec: {command: x}},
		each: {type: shell, spec: {command: x}, dependsOn: [discover], foreach: "discover.files", env: {WHAT: "${{ input.item }}"},
			concurrency: 1, maxFailures: 3, retry: {maxRetries: 1, backoffMs: 1}},
		after: {type: shell, spec: {command: x}, dependsOn: [each]}}}`)
	h := c.submit(in)
	want(t, h.wait(), "failed", map[string]string{"each": "failed instances", "after": "skipped upstream"})
	h = h.again(in, 1, "each[2]")
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	if got := fmt.Sprint(c.seen("each", "WHAT")); got != "[a a b b c c c d d e f g h i j]" {
		t.Errorf("instances saw %s", got)
	}
	if n := c.calls()["discover"]; n != 1 || fmt.Sprint(run.Tasks["each"].GetCounts()) != "map[completed:7 dead_letter:3]" {
		t.Errorf("each: %v", run.Tasks["each"])
	}
	replay(t, "letters-large-again", inParts, h.history(""))
}

// TestCancelledInstancesCountOverAllParts checks that cancelled instances count across all parts of a fan-out.
func TestCancelledInstancesCountOverAllParts(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{"each": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(`{name: large, tasks: {each: {type: shell, spec: {command: x}, parallel: 8, concurrency: 2, maxFailures: 1}}}`))
	for _, from := range []int{0, 4} {
		child := h.child(0, "each", from)
		eventually(t, "the part is there", func() bool {
			_, err := h.conn.DescribeWorkflowExecution(t.Context(), child.id, "")
			return err == nil
		})
		child.until("each", func(x *v1.Task) bool { return x.GetCounts()["assigned"]+x.GetCounts()["running"] == 1 })
		if err := child.update(names.CancelTaskUpdate, &v1.TaskCommand{Task: names.InstanceName("each", from)}); err != nil {
			t.Fatal(err)
		}
	}
	h.until("each", func(x *v1.Task) bool { return x.GetCounts()["cancelled"] == 2 })
	c.fake.Release("each")
	run := h.wait()
	want(t, run, "failed", map[string]string{"each": "failed instances"})
	each := run.Tasks["each"]
	if each.GetError() != "2 of 8 instances were cancelled" || each.GetCounts()["cancelled"] != 2 || each.GetCounts()["skipped"] == 0 {
		t.Errorf("each: %v", each)
	}
}

// TestAgainForInstancesOfManyParts checks that retrying instances of more parts than may be open at once leaves the
// other ended instances unchanged, even when the run continues as new in between.
func TestAgainForInstancesOfManyParts(t *testing.T) {
	t.Parallel()
	limits := inParts
	limits.HistoryEvents = 20
	y := own(t, ControlConfig{limits: limits})
	var steps []fake.Step
	for range 96 {
		steps = append(steps, fake.Exit(1))
	}
	c := y.workers(t, script{"each": append(steps, fake.Step{Block: true})})
	c.start("n")
	in := c.input(`{name: letters, tasks: {each: {type: shell, spec: {command: x}, parallel: 48, maxFailures: 47, retry: {maxRetries: 1, backoffMs: 1}}}}`)
	h := c.submit(in)
	want(t, h.wait(), "failed", map[string]string{"each": "failed instances"})
	before := len(h.executions())
	var back []string
	for from := range 12 {
		back = append(back, names.InstanceName("each", from*4))
	}
	h = h.again(in, 1, back...)
	eventually(t, "as many parts as may be are open", func() bool { return c.calls()["each"] == 96+8 })
	eventually(t, "the run has continued as new", func() bool { return len(h.executions()) > before+1 })
	c.fake.Release("each")
	want(t, h.wait(), "completed", map[string]string{"each": "completed"})
	if n := c.calls()["each"]; n != 96+12 {
		t.Errorf("%d executions", n)
	}
}
