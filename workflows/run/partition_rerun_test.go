package run_test

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// eightFail returns steps that make all four instances of the first partition fail twice, followed by the given steps.
func eightFail(then ...fake.Step) []fake.Step {
	var steps []fake.Step
	for range 8 {
		steps = append(steps, fake.Exit(1))
	}
	return append(steps, then...)
}

// TestRetryOfInstanceInPartitionLiftsTheHalt checks that retrying the dead letter of an instance in a child of the
// running run also lifts the halt of the other instances.
func TestRetryOfInstanceInPartitionLiftsTheHalt(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, inPartitions)
	c := y.Nodes(t, workertest.Script{"each": eightFail(fake.Step{Output: "n=1"}), "z": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(`{name: letters, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 10, concurrency: 1, maxFailures: 3, retry: {maxRetries: 1, backoffMs: 1}},
		after: {type: shell, spec: {command: x}, dependsOn: [each]},
		z: {type: shell, spec: {command: x}}}}`))
	each := h.AwaitTask("each", func(x *v1.Task) bool { return x.GetState() == "failed" })
	if got := fmt.Sprint(each.GetCounts()); got != "map[dead_letter:4 skipped:6]" {
		t.Errorf("each: %s", got)
	}
	awaitVisibleDeadLetters(h, 4)
	wantRefused(t, retryTask(h, "each[7]"), names.TaskStateError, "each[7]")
	wantRefused(t, retryTask(h, "each[10]"), names.UnknownTaskError, "each[10]")
	if err := retryTask(h, "each[1]"); err != nil {
		t.Fatal(err)
	}
	h.AwaitTask("after", func(x *v1.Task) bool { return x.GetState() == "completed" })
	c.Fake.Release("z")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	if n := c.Calls()["each"]; n != 15 || fmt.Sprint(run.Tasks["each"].GetCounts()) != "map[completed:7 dead_letter:3]" {
		t.Errorf("%d executions: %v", n, run.Tasks["each"])
	}
	child := h.Partition(0, "each", 0)
	res := instancesPage(h, child.ID, &historyv1.InstancesRequest{Task: "each", From: 0})
	if one := res.GetInstances()[1]; one.GetState() != "completed" || one.GetAttempt() != 0 || len(one.GetAttempts()) != 3 || res.GetClaims()[1] != 3 {
		t.Errorf("instance 1: %v", one)
	}
	// The events of the partition are complete from its first opening on.
	if got := lifecycleOf(child, "each[1]", 1); !strings.Contains(got, "dead_lettered retried") || !strings.HasSuffix(got, "completed") {
		t.Errorf("events of instance 1: %s", got)
	}
	workertest.Replay(t, "letters-large", inPartitions, h.History(""))
	workertest.Replay(t, "letters-large-part", inPartitions, child.History(""))
}

// TestRetryReopensPartitionWhileOthersRun checks that a partition that has ended is reopened while other partitions of
// its task run.
func TestRetryReopensPartitionWhileOthersRun(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, inPartitions)
	c := y.Nodes(t, workertest.Script{"each": eightFail(fake.Step{Block: true}, fake.Step{})})
	c.Start("n")
	h := c.Submit(c.Input(`{name: letters, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 10, concurrency: 1, maxFailures: 4, retry: {maxRetries: 1, backoffMs: 1}}}}`))
	c.AwaitRunning("each")
	wantRefused(t, retryTask(h, "each[4]"), names.UnknownTaskError, "each[4]") // the run must ask the child
	if err := retryTask(h, "each[3]"); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, retryTask(h, "each[3]"), names.TaskStateError, "each[3]")
	c.Fake.Release("each")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed"})
	if n := c.Calls()["each"]; n != 15 || fmt.Sprint(run.Tasks["each"].GetCounts()) != "map[completed:7 dead_letter:3]" {
		t.Errorf("%d executions: %v", n, run.Tasks["each"])
	}
	workertest.Replay(t, "letters-large-open", inPartitions, h.History(""))
}

// TestRerunOfOneInstanceLeavesOtherFailures checks that an ended run continues for a single instance of a child, with
// its item, and that other failures stay as they are.
func TestRerunOfOneInstanceLeavesOtherFailures(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, inPartitions)
	c := y.Nodes(t, workertest.Script{
		"discover": {{Output: `{"files": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]}`}},
		"each":     eightFail(fake.Step{})})
	c.Start("n")
	in := c.Input(`{name: letters, tasks: {
		discover: {type: shell, spec: {command: x}},
		each: {type: shell, spec: {command: x}, dependsOn: [discover], foreach: "discover.files", env: {WHAT: "${{ input.item }}"},
			concurrency: 1, maxFailures: 3, retry: {maxRetries: 1, backoffMs: 1}},
		after: {type: shell, spec: {command: x}, dependsOn: [each]}}}`)
	h := c.Submit(in)
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"each": "failed instances", "after": "skipped upstream"})
	h = rerunTasks(h, in, 1, "each[2]")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	if got := fmt.Sprint(valuesSeen(c, "each", "WHAT")); got != "[a a b b c c c d d e f g h i j]" {
		t.Errorf("instances saw %s", got)
	}
	if n := c.Calls()["discover"]; n != 1 || fmt.Sprint(run.Tasks["each"].GetCounts()) != "map[completed:7 dead_letter:3]" {
		t.Errorf("each: %v", run.Tasks["each"])
	}
	workertest.Replay(t, "letters-large-again", inPartitions, h.History(""))
}
