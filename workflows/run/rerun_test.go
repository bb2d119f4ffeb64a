package run_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestRerunRepeatsOnlyWhatFailed checks that a new generation repeats only what did not complete, and of a fan-out only
// those instances.
func TestRerunRepeatsOnlyWhatFailed(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"each": {{Output: "n=0"}, fake.Exit(1), {Output: "n=2"}, {Output: "n=1"}}, "bad": {fake.Exit(1), {}}})
	c.Start("n")
	in := c.Input(`{name: again, tasks: {
		good: {type: shell, spec: {command: x}},
		bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		each: {type: shell, spec: {command: x}, parallel: 3, concurrency: 1, maxFailures: 0, retry: {maxRetries: 0}},
		last: {type: shell, spec: {command: x}, dependsOn: [bad, each], condition: "parent.each.outputs[1].n != ''"}}}`)
	h := c.Submit(in)
	first := h.Wait()
	workertest.CheckRun(t, first, "failed", map[string]string{"bad": "failed", "each": "failed instances", "last": "skipped"})
	h = h.Rerun(in, 1, &historyv1.Rerun{Failed: true})
	second := h.Wait()
	workertest.CheckRun(t, second, "completed", map[string]string{"bad": "completed", "each": "completed", "last": "completed", "good": "completed"})
	if got := instances(second.Tasks["each"]); got != "completed completed completed" {
		t.Errorf("each: %s", got)
	}
	if n := c.Calls(); !maps.Equal(n, map[string]int{"good": 1, "bad": 2, "each": 4, "last": 1}) {
		t.Errorf("executions: %v", n)
	}
	workertest.Replay(t, "again-failed", limits.Run{}, h.History(""))

	h = h.Rerun(in, 2, &historyv1.Rerun{From: []string{"each"}})
	third := h.Wait()
	workertest.CheckRun(t, third, "completed", map[string]string{"each": "completed", "last": "completed"})
	if n := c.Calls(); !maps.Equal(n, map[string]int{"good": 1, "bad": 2, "each": 7, "last": 2}) {
		t.Errorf("executions: %v", n)
	}
	if got := instances(third.Tasks["each"]); got != "completed completed completed" || third.Tasks["each"].GetCount() != 3 {
		t.Errorf("each: %s", got)
	}
	claims := map[string]int32{}
	for _, e := range append(storedEvents(h, 0), append(storedEvents(h, 1), storedEvents(h, 2)...)...) {
		if strings.HasPrefix(e.GetTask(), "each[") && e.GetEvent() == "assigned" {
			if e.GetClaim() <= claims[e.GetTask()] {
				t.Errorf("claim %d of %s is used again", e.GetClaim(), e.GetTask())
			}
			claims[e.GetTask()] = e.GetClaim()
		}
	}
	workertest.Replay(t, "again-from", limits.Run{}, h.History(""))
}

// TestRerunOfLargeFanOutKeepsCompletedInstances checks that a large fan-out keeps its completed instances, including
// those of partitions in which others failed. They are found where they were, and no claim is reused.
func TestRerunOfLargeFanOutKeepsCompletedInstances(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, inPartitions)
	c := y.Nodes(t, workertest.Script{"each": {{Output: "n=0"}, {Output: "n=1"}, {Output: "n=2"}, {Output: "n=3"}, {Output: "n=4"}, fake.Exit(1), {Output: "n=5"}}})
	c.Start("n")
	in := c.Input(`{name: large, tasks: {
		whole: {type: shell, spec: {command: x}, parallel: 6},
		each: {type: shell, spec: {command: x}, parallel: 6, concurrency: 1, retry: {maxRetries: 0}},
		last: {type: shell, spec: {command: x}, dependsOn: [each, whole], when: all_success, condition: "size(parent.each.outputs) == 6 && size(parent.whole.outputs) == 6 && parent.each.outputs[4].n >= '4'"}}}`)
	h := c.Submit(in)
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"whole": "completed", "each": "failed instances", "last": "skipped"})
	h = h.Rerun(in, 1, &historyv1.Rerun{Failed: true})
	second := h.Wait()
	workertest.CheckRun(t, second, "completed", map[string]string{"each": "completed", "last": "completed"})
	if n := c.Calls(); !maps.Equal(n, map[string]int{"whole": 6, "each": 7, "last": 1}) {
		t.Errorf("executions: %v", n)
	}
	if got := fmt.Sprint(second.Tasks["each"].GetCounts()); got != "map[completed:6]" {
		t.Errorf("each: %s", got)
	}
	for from, generation := range map[int]int32{0: 0, 4: 1} {
		child := instancesPage(h, h.ID, &historyv1.InstancesRequest{Task: "each", From: int32(from)}).GetChild()
		if child != h.Partition(generation, "each", from).ID {
			t.Errorf("instances from %d are in %s", from, child)
		}
		if child := instancesPage(h, h.ID, &historyv1.InstancesRequest{Task: "whole", From: int32(from)}).GetChild(); child != h.Partition(0, "whole", from).ID {
			t.Errorf("instances of the whole from %d are in %s", from, child)
		}
	}
	res := instancesPage(h, h.Partition(1, "each", 4).ID, &historyv1.InstancesRequest{Task: "each", From: 4})
	if len(res.GetInstances()) != 2 || res.GetClaims()[4] != 1 || res.GetClaims()[5] != 2 {
		t.Errorf("instances: %v", res)
	}
	workertest.Replay(t, "again-large", inPartitions, h.History(""))
	workertest.Replay(t, "again-large-part", inPartitions, h.Partition(1, "each", 4).History(""))

	h = h.Rerun(in, 2, &historyv1.Rerun{From: []string{"each"}})
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"each": "completed", "last": "completed"})
	if n := c.Calls(); !maps.Equal(n, map[string]int{"whole": 6, "each": 13, "last": 2}) {
		t.Errorf("executions: %v", n)
	}
	if res := instancesPage(h, h.Partition(2, "each", 4).ID, &historyv1.InstancesRequest{Task: "each", From: 4}); res.GetClaims()[5] <= 2 {
		t.Errorf("instances: %v", res)
	}
}

// TestRetryOfInstanceContinuesItsTask checks that the dead letter of an instance is retried like that of a task: its
// task continues, and downstream tasks that were skipped wait again.
func TestRetryOfInstanceContinuesItsTask(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"each": {fake.Exit(1), fake.Exit(1), {}}, "z": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(`{name: letters, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 1, retry: {maxRetries: 1, backoffMs: 1}},
		after: {type: shell, spec: {command: x}, dependsOn: [each]},
		z: {type: shell, spec: {command: x}}}}`))
	h.AwaitTask("each", func(x *v1.Task) bool { return x.GetState() == "failed" })
	awaitVisibleDeadLetters(h, 1)
	wantRefused(t, retryTask(h, "each"), names.TaskStateError, "each")
	wantRefused(t, retryTask(h, "each[1]"), names.UnknownTaskError, "each[1]")
	if err := retryTask(h, "each[0]"); err != nil {
		t.Fatal(err)
	}
	h.AwaitTask("after", func(x *v1.Task) bool { return x.GetState() == "completed" })
	c.Fake.Release("z")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	if got := run.Tasks["each"].GetInstances()[0]; got.GetState() != "completed" || len(got.GetAttempts()) != 3 || got.GetAttempt() != 0 {
		t.Errorf("instance: %v", got)
	}
	workertest.Replay(t, "dead-letter-instance", limits.Run{}, h.History(""))
}
