package run_test

import (
	"fmt"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestPausedRunAndHeldTaskStartNothing checks that a paused run starts nothing, a held task does not start, and
// cancelling a task affects only that task.
func TestPausedRunAndHeldTaskStartNothing(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}, "doomed": {{Block: true}}})
	h := c.Submit(c.Input(`{name: steered, tasks: {
		a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]},
		each: {type: shell, spec: {command: x}, dependsOn: [a], parallel: 3},
		c: {type: shell, spec: {command: x}, dependsOn: [b]},
		doomed: {type: shell, spec: {command: x}}}}`))
	// There is no node yet, and a task that waits for one can be held.
	h.AwaitTask("a", func(x *v1.Task) bool { return x.GetError() != "" })
	mustUpdate(h, names.HoldUpdate, "a")
	mustUpdate(h, names.HoldUpdate, "each")
	wantRefused(t, sendUpdate(h, names.HoldUpdate, command("nobody")), names.UnknownTaskError, "nobody")
	c.Start("n")
	c.AwaitRunning("doomed")
	mustUpdate(h, names.CancelTaskUpdate, "doomed")
	h.AwaitTask("doomed", func(x *v1.Task) bool { return x.GetState() == "cancelled" })
	if a := h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["a"]; !a.GetHeld() || a.GetState() != "queued" || c.Calls()["a"] != 0 {
		t.Errorf("a is %v", a)
	}
	mustSteerRun(h, names.PauseUpdate)
	wantRefused(t, sendUpdate(h, names.PauseUpdate, &historyv1.RunCommand{}), names.TaskStateError, "already paused")
	mustUpdate(h, names.ReleaseUpdate, "a")
	if run := h.Status(&historyv1.StatusRequest{}).GetRun(); run.GetState() != "paused" || run.GetTasks()["a"].GetHeld() || c.Calls()["a"] != 0 {
		t.Errorf("the run is %s", workertest.Summary(run))
	}
	mustSteerRun(h, names.ResumeUpdate)
	c.AwaitRunning("a")
	c.Fake.Release("a")
	h.AwaitTask("c", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if run := h.Status(&historyv1.StatusRequest{}).GetRun(); run.GetState() != "running" || run.GetTasks()["each"].GetState() != "pending" || !run.GetTasks()["each"].GetHeld() {
		t.Errorf("the run is %s", workertest.Summary(run))
	}
	mustUpdate(h, names.ReleaseUpdate, "each")
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"doomed": "cancelled task_cancelled", "each": "completed", "c": "completed"})
	if got := lifecycleOf(h, "", 1); got != "submitted paused resumed completed" {
		t.Errorf("events of the run: %s", got)
	}
	if got := lifecycleOf(h, "a", 1); !strings.HasPrefix(got, "submitted queued held") || !strings.Contains(got, " released ") {
		t.Errorf("events of a: %s", got)
	}
	workertest.Replay(t, "steered", limits.Run{}, h.History(""))
}

// isPaused reports whether the newest attempt of a task is suspended on its node.
func isPaused(c *workertest.Nodes, task string) bool {
	for _, call := range c.Fake.Calls() {
		if call.Task == task && c.Fake.Paused(call.Attempt.ID) {
			return true
		}
	}
	return false
}

// TestPausedTaskIsSuspendedAndResumed checks that running tasks can be suspended and resumed.
func TestPausedTaskIsSuspendedAndResumed(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}, "stopped": {{Block: true}}, "each": {{Block: true}}})
	h := c.Submit(c.Input(`{name: steered, tasks: {
		a: {type: shell, spec: {command: x}}, stopped: {type: shell, spec: {command: x}, continueOnError: true},
		after: {type: shell, spec: {command: x}, dependsOn: [a]}, ok: {type: approval},
		each: {type: shell, spec: {command: x}, parallel: 3, batch: 3}}}`))
	h.AwaitTask("a", func(x *v1.Task) bool { return x.GetError() != "" })
	h.AwaitTask("ok", func(x *v1.Task) bool { return x.GetState() == "paused" })
	c.Start("n")
	for _, task := range []string{"a", "stopped", "each"} {
		c.AwaitRunning(task)
	}
	wantRefused(t, sendUpdate(h, names.PauseTaskUpdate, command("each[1]")), names.TaskStateError, "waits in its batch for its turn")
	for _, task := range []string{"a", "stopped", "each[0]"} {
		mustUpdate(h, names.PauseTaskUpdate, task)
	}
	run := h.Status(&historyv1.StatusRequest{}).GetRun()
	if a := run.Tasks["a"]; a.GetState() != "paused" || a.GetReason() != "suspended" || a.GetError() != "by me: for a test" || !isPaused(c, "a") {
		t.Errorf("a is %v", a)
	}
	each := run.Tasks["each"]
	if each.GetCounts()["paused"] != 1 || len(each.GetInstances()) != 3 || !isPaused(c, "each") {
		t.Errorf("each is %v", each)
	}
	for _, i := range each.GetInstances() {
		if (i.GetState() == "paused") != (i.GetIndex() == 0) {
			t.Errorf("each is %v", each)
		}
	}
	c.Fake.Release("each") // would end an attempt that is not suspended
	mustUpdate(h, names.CancelTaskUpdate, "stopped")
	h.AwaitTask("stopped", func(x *v1.Task) bool { return x.GetState() == "cancelled" })
	if !isPaused(c, "a") || !isPaused(c, "each") {
		t.Error("it continues by itself")
	}
	for _, task := range []string{"a", "each[0]"} {
		mustUpdate(h, names.ResumeTaskUpdate, task)
	}
	c.Fake.Release("a")
	h.AwaitTask("after", func(x *v1.Task) bool { return x.GetState() == "completed" })
	mustUpdate(h, names.ApproveUpdate, "ok")
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"a": "completed", "each": "completed", "stopped": "cancelled task_cancelled"})
	if c.Calls()["a"] != 1 || c.Calls()["each"] != 3 {
		t.Errorf("calls %v", c.Calls())
	}
	if got := lifecycleOf(h, "a", 1); !strings.Contains(got, "assigned paused resumed") || !strings.HasSuffix(got, "completed") {
		t.Errorf("events of a: %s", got)
	}
	workertest.Replay(t, "paused", limits.Run{}, h.History(""))
}

// TestKilledTaskIsNeverRetried checks that a killed task fails as killed in any state and is never retried.
func TestKilledTaskIsNeverRetried(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"running": {{Block: true}}, "paused": {{Block: true}}, "backoff": {fake.Exit(1)}, "each": {{Block: true}}})
	h := c.Submit(c.Input(fmt.Sprintf(`{name: killed, tasks: {
		first: {type: shell, spec: {command: x}}, pending: {type: shell, spec: {command: x}, dependsOn: [running]},
		held: {type: shell, spec: {command: x}}, ok: {type: approval}, child: {type: run, spec: {definition: %s}},
		running: {type: shell, spec: {command: x}}, paused: {type: shell, spec: {command: x}},
		nowhere: {type: shell, spec: {command: x}, constraints: {nodeLabels: [nowhere]}},
		backoff: {type: shell, spec: {command: x}, retry: {backoffMs: 3600000, maxBackoffMs: 3600000}},
		each: {type: shell, spec: {command: x}, parallel: 4, concurrency: 2},
		below: {type: shell, spec: {command: x}, dependsOn: [running], onFailure: run}}}`, childDefinition(c, "inner", "running", ""))))
	mustUpdate(h, names.HoldUpdate, "held")
	c.Start("n")
	for _, task := range []string{"running", "paused", "each"} {
		c.AwaitRunning(task)
	}
	h.AwaitTask("ok", func(x *v1.Task) bool { return x.GetState() == "paused" })
	h.AwaitTask("child", func(x *v1.Task) bool { return x.GetState() == "running" })
	h.AwaitTask("first", func(x *v1.Task) bool { return x.GetState() == "completed" })
	h.AwaitTask("backoff", func(x *v1.Task) bool { return x.GetScheduledAfter() != nil })
	h.AwaitTask("nowhere", func(x *v1.Task) bool { return x.GetError() != "" })
	mustUpdate(h, names.PauseTaskUpdate, "paused")
	wantRefused(t, sendUpdate(h, names.KillTaskUpdate, command("first")), names.TaskStateError, "task first is completed; it has ended")
	tasks := []string{"pending", "held", "ok", "child", "running", "paused", "nowhere", "backoff", "each"}
	for _, task := range tasks {
		mustUpdate(h, names.KillTaskUpdate, task)
	}
	run := h.Wait()
	ends := map[string]string{"first": "completed", "below": "completed"}
	for _, task := range tasks {
		ends[task] = "killed killed"
		if x := run.Tasks[task]; x.GetError() != "killed by me: for a test" {
			t.Errorf("%s: %v", task, x)
		}
	}
	workertest.CheckRun(t, run, "failed", ends)
	if !strings.Contains(run.GetError(), "was killed: killed by me: for a test") {
		t.Errorf("the run: %s", run.GetError())
	}
	if a := run.Tasks["running"].GetAttempts(); len(a) != 1 || a[0].GetState() != "killed" || a[0].GetReason() != "killed" {
		t.Errorf("attempts of running: %v", a)
	}
	if n := run.Tasks["each"].GetCounts()["killed"]; n != 4 {
		t.Errorf("each: %v", run.Tasks["each"].GetCounts())
	}
	if n := c.Calls(); n["backoff"] != 1 || n["running"] > 2 || n["held"] != 0 || n["each"] > 2 { // one of the child's instances may be among them
		t.Errorf("calls %v", n)
	}
	if got := lifecycleOf(h, "running", 1); got != "submitted queued assigned started killed" {
		t.Errorf("events of running: %s", got)
	}
	workertest.Replay(t, "killed", limits.Run{}, h.History(""))
}

// TestSteeringOfDetachedAttemptsSurvivesContinueAsNew checks that an attempt suspended by a user stays so across
// executions of the run, and that a killed one ends as killed, whenever the kill arrives.
func TestSteeringOfDetachedAttemptsSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, detachLimits())
	c := y.Nodes(t, workertest.Script{"long": {{Block: true}}, "doomed": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.InputOf(chainBeside(40, map[string]*v1.TaskDefinition{"long": workertest.ShellTask(), "doomed": workertest.ShellTask()})))
	c.AwaitRunning("long")
	c.AwaitRunning("doomed")
	mustUpdate(h, names.PauseTaskUpdate, "long")
	workertest.Eventually(t, "another execution", func() bool { return len(executionsOf(h)) > 1 })
	mustUpdate(h, names.KillTaskUpdate, "doomed")
	h.AwaitTask("t39", func(x *v1.Task) bool { return x.GetState() == "completed" })
	long := h.AwaitTask("long", func(x *v1.Task) bool { return x.GetStartedAt() != nil })
	if long.GetState() != "paused" || long.GetError() != "by me: for a test" || !isPaused(c, "long") {
		t.Errorf("long is %v", long)
	}
	executions := executionsOf(h)
	if len(executions) < 3 {
		t.Errorf("%d executions", len(executions))
	}
	mustUpdate(h, names.ResumeTaskUpdate, "long")
	c.Fake.Release("long")
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"long": "completed", "doomed": "killed killed", "t39": "completed"})
	if n := c.Calls(); n["long"] != 1 || n["doomed"] != 1 {
		t.Errorf("calls %v", n)
	}
	for i, execution := range executions[:2] {
		workertest.Replay(t, fmt.Sprintf("continued-paused-%d", i), detachLimits(), h.History(execution))
	}
}

// TestInstancesInPartitionsAreSteeredThere checks that instances in children can be controlled there, and are killed
// with their task.
func TestInstancesInPartitionsAreSteeredThere(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, inPartitions)
	c := y.Nodes(t, workertest.Script{"each": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(`{name: large, tasks: {each: {type: shell, spec: {command: x}, parallel: 10}}}`))
	err := c.Fake.Await(within(t), func(_ []fake.Call, running map[string]int) bool { return running["each"] == 10 })
	if err != nil {
		t.Fatal(err)
	}
	child := h.Partition(0, "each", 4)
	wantRefused(t, sendUpdate(h, names.PauseTaskUpdate, command("each[6]")), names.UnknownTaskError, "each[6]")
	mustUpdate(child, names.PauseTaskUpdate, "each[6]")
	if i := instancesPage(h, child.ID, &historyv1.InstancesRequest{Task: "each", From: 6}).GetInstances()[0]; i.GetState() != "paused" || i.GetReason() != "suspended" {
		t.Errorf("each[6] is %v", i)
	}
	h.AwaitTask("each", func(x *v1.Task) bool { return x.GetCounts()["paused"] == 1 })
	mustUpdate(child, names.ResumeTaskUpdate, "each[6]")
	mustUpdate(child, names.PauseTaskUpdate, "each[7]")
	mustUpdate(h, names.KillTaskUpdate, "each")
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"each": "killed killed"})
	if n := run.Tasks["each"].GetCounts()["killed"]; n != 10 {
		t.Errorf("each: %v", run.Tasks["each"].GetCounts())
	}
	workertest.Replay(t, "part-killed", inPartitions, child.History(""))
	workertest.Replay(t, "parts-killed", inPartitions, h.History(""))
}

// scheduled returns the attributes of an event that schedules an activity of the given type, or nil for any other
// event.
func scheduled(e *historypb.HistoryEvent, activity string) *historypb.ActivityTaskScheduledEventAttributes {
	if a := e.GetActivityTaskScheduledEventAttributes(); e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED && a.GetActivityType().GetName() == activity {
		return a
	}
	return nil
}
