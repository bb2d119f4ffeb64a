package workers

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// anew starts the ended run as its next generation with a change.
func (h *handle) anew(in *v1.RunInput, generation int32, again *v1.Rerun) *handle {
	h.t.Helper()
	in = &v1.RunInput{Definition: in.GetDefinition(), References: in.GetReferences(), Options: in.GetOptions(), Generation: generation, Rerun: again, Chain: h.chain}
	run, err := h.conn.ExecuteWorkflow(h.t.Context(), client.StartWorkflowOptions{
		ID: h.id, TaskQueue: names.ControlQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, names.RunWorkflow, in)
	if err != nil {
		h.t.Fatal(err)
	}
	return &handle{workerSet: h.workerSet, id: h.id, run: run, chain: h.chain}
}

// TestAgainWhatFailed checks that a new generation repeats only what did not complete, and of a fan-out only those
// instances.
func TestAgainWhatFailed(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"each": {{Output: "n=0"}, fake.Exit(1), {Output: "n=2"}, {Output: "n=1"}}, "bad": {fake.Exit(1), {}}})
	c.start("n")
	in := c.input(`{name: again, tasks: {
		good: {type: shell, spec: {command: x}},
		bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		each: {type: shell, spec: {command: x}, parallel: 3, concurrency: 1, maxFailures: 0, retry: {maxRetries: 0}},
		last: {type: shell, spec: {command: x}, dependsOn: [bad, each], condition: "parent.each.outputs[1].n != ''"}}}`)
	h := c.submit(in)
	first := h.wait()
	want(t, first, "failed", map[string]string{"bad": "failed", "each": "failed instances", "last": "skipped"})
	h = h.anew(in, 1, &v1.Rerun{Failed: true})
	second := h.wait()
	want(t, second, "completed", map[string]string{"bad": "completed", "each": "completed", "last": "completed", "good": "completed"})
	if got := instances(second.Tasks["each"]); got != "completed completed completed" {
		t.Errorf("each: %s", got)
	}
	if n := c.calls(); !maps.Equal(n, map[string]int{"good": 1, "bad": 2, "each": 4, "last": 1}) {
		t.Errorf("executions: %v", n)
	}
	replay(t, "again-failed", limits.Run{}, h.history(""))

	h = h.anew(in, 2, &v1.Rerun{From: []string{"each"}})
	third := h.wait()
	want(t, third, "completed", map[string]string{"each": "completed", "last": "completed"})
	if n := c.calls(); !maps.Equal(n, map[string]int{"good": 1, "bad": 2, "each": 7, "last": 2}) {
		t.Errorf("executions: %v", n)
	}
	if got := instances(third.Tasks["each"]); got != "completed completed completed" || third.Tasks["each"].GetCount() != 3 {
		t.Errorf("each: %s", got)
	}
	claims := map[string]int32{}
	for _, e := range append(h.stored(0), append(h.stored(1), h.stored(2)...)...) {
		if strings.HasPrefix(e.GetTask(), "each[") && e.GetEvent() == "assigned" {
			if e.GetClaim() <= claims[e.GetTask()] {
				t.Errorf("claim %d of %s is used again", e.GetClaim(), e.GetTask())
			}
			claims[e.GetTask()] = e.GetClaim()
		}
	}
	replay(t, "again-from", limits.Run{}, h.history(""))
}

// TestRetryRunsInstancesThatNeverStarted checks that a retry runs each instance once that never started because others
// had failed or the run was cancelled, and leaves completed ones alone.
func TestRetryRunsInstancesThatNeverStarted(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	for kind, instances := range map[string]int{"inline": 4, "large": 12} { // inParts: 4 a part, and at most that many inline
		for how, second := range map[string]fake.Step{"failed": fake.Exit(1), "cancelled": {Block: true}} {
			t.Run(kind+" "+how, func(t *testing.T) {
				c := y.workers(t, script{"each": {{}, second, {}}})
				c.start("n")
				in := c.input(fmt.Sprintf(`{name: halfway, tasks: {
					each: {type: shell, spec: {command: x}, parallel: %d, concurrency: 1, retry: {maxRetries: 0}},
					last: {type: shell, spec: {command: x}, dependsOn: [each]}}}`, instances))
				h := c.submit(in)
				if how == "cancelled" {
					eventually(t, "the second instance runs", func() bool { return c.calls()["each"] == 2 })
					h.signal(nil)
				}
				if run := h.wait(); run.GetState() != how || run.GetTasks()["each"].GetCounts()["completed"] != 1 {
					t.Fatalf("%s, %v", run.GetState(), run.GetTasks()["each"].GetCounts())
				}
				run := h.anew(in, 1, &v1.Rerun{Failed: true}).wait()
				want(t, run, "completed", map[string]string{"each": "completed", "last": "completed"})
				if got := fmt.Sprint(run.GetTasks()["each"].GetCounts()); got != fmt.Sprintf("map[completed:%d]", instances) {
					t.Errorf("each: %s", got)
				}
				times := map[string]int{}
				for _, index := range c.seen("each", "SWITCHYARD_INDEX") {
					times[index]++
				}
				for i := range instances {
					wanted := 1
					if i == 1 {
						wanted = 2
					}
					if n := times[fmt.Sprint(i)]; n != wanted {
						t.Errorf("instance %d ran %d times, want %d", i, n, wanted)
					}
				}
			})
		}
	}
}

// TestAgainALargeFanOut checks that a large fan-out keeps its completed instances, including those of parts in which
// others failed. They are found where they were, and no claim is reused.
func TestAgainALargeFanOut(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{"each": {{Output: "n=0"}, {Output: "n=1"}, {Output: "n=2"}, {Output: "n=3"}, {Output: "n=4"}, fake.Exit(1), {Output: "n=5"}}})
	c.start("n")
	in := c.input(`{name: large, tasks: {
		whole: {type: shell, spec: {command: x}, parallel: 6},
		each: {type: shell, spec: {command: x}, parallel: 6, concurrency: 1, retry: {maxRetries: 0}},
		last: {type: shell, spec: {command: x}, dependsOn: [each, whole], when: all_success, condition: "size(parent.each.outputs) == 6 && size(parent.whole.outputs) == 6 && parent.each.outputs[4].n >= '4'"}}}`)
	h := c.submit(in)
	want(t, h.wait(), "failed", map[string]string{"whole": "completed", "each": "failed instances", "last": "skipped"})
	h = h.anew(in, 1, &v1.Rerun{Failed: true})
	second := h.wait()
	want(t, second, "completed", map[string]string{"each": "completed", "last": "completed"})
	if n := c.calls(); !maps.Equal(n, map[string]int{"whole": 6, "each": 7, "last": 1}) {
		t.Errorf("executions: %v", n)
	}
	if got := fmt.Sprint(second.Tasks["each"].GetCounts()); got != "map[completed:6]" {
		t.Errorf("each: %s", got)
	}
	for from, generation := range map[int]int32{0: 0, 4: 1} {
		child := h.page(h.id, &v1.InstancesRequest{Task: "each", From: int32(from)}).GetChild()
		if child != h.child(generation, "each", from).id {
			t.Errorf("instances from %d are in %s", from, child)
		}
		if child := h.page(h.id, &v1.InstancesRequest{Task: "whole", From: int32(from)}).GetChild(); child != h.child(0, "whole", from).id {
			t.Errorf("instances of the whole from %d are in %s", from, child)
		}
	}
	res := h.page(h.child(1, "each", 4).id, &v1.InstancesRequest{Task: "each", From: 4})
	if len(res.GetInstances()) != 2 || res.GetClaims()[4] != 1 || res.GetClaims()[5] != 2 {
		t.Errorf("instances: %v", res)
	}
	replay(t, "again-large", inParts, h.history(""))
	replay(t, "again-large-part", inParts, h.child(1, "each", 4).history(""))

	h = h.anew(in, 2, &v1.Rerun{From: []string{"each"}})
	want(t, h.wait(), "completed", map[string]string{"each": "completed", "last": "completed"})
	if n := c.calls(); !maps.Equal(n, map[string]int{"whole": 6, "each": 13, "last": 2}) {
		t.Errorf("executions: %v", n)
	}
	if res := h.page(h.child(2, "each", 4).id, &v1.InstancesRequest{Task: "each", From: 4}); res.GetClaims()[5] <= 2 {
		t.Errorf("instances: %v", res)
	}
}

// TestAgainAfterCancel checks that a cancelled run continues where it stopped.
func TestAgainAfterCancel(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"b": {{Block: true}, {}}})
	c.start("n")
	in := c.input(`{name: again, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`)
	h := c.submit(in)
	c.running("b")
	h.signal(nil)
	want(t, h.wait(), "cancelled", map[string]string{"a": "completed", "b": "cancelled"})
	want(t, h.anew(in, 1, &v1.Rerun{Failed: true}).wait(), "completed", map[string]string{"a": "completed", "b": "completed"})
	if n := c.calls(); n["a"] != 1 || n["b"] != 2 {
		t.Errorf("executions: %v", n)
	}
}

// TestRetryOfAnInstance checks that the dead letter of an instance is retried like that of a task: its task continues,
// and downstream tasks that were skipped wait again.
func TestRetryOfAnInstance(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"each": {fake.Exit(1), fake.Exit(1), {}}, "z": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(`{name: letters, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 1, retry: {maxRetries: 1, backoffMs: 1}},
		after: {type: shell, spec: {command: x}, dependsOn: [each]},
		z: {type: shell, spec: {command: x}}}}`))
	h.until("each", func(x *v1.Task) bool { return x.GetState() == "failed" })
	h.visibleDeadLetters(1)
	wantRefused(t, h.retry("each"), names.TaskStateError, "each")
	wantRefused(t, h.retry("each[1]"), names.UnknownTaskError, "each[1]")
	if err := h.retry("each[0]"); err != nil {
		t.Fatal(err)
	}
	h.until("after", func(x *v1.Task) bool { return x.GetState() == "completed" })
	c.fake.Release("z")
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	if got := run.Tasks["each"].GetInstances()[0]; got.GetState() != "completed" || len(got.GetAttempts()) != 3 || got.GetAttempt() != 0 {
		t.Errorf("instance: %v", got)
	}
	replay(t, "dead-letter-instance", limits.Run{}, h.history(""))
}
