package workers

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// command returns a user's command for a task.
func command(task string) *v1.TaskCommand {
	return &v1.TaskCommand{Task: task, Reason: "for a test", By: "me"}
}

// must sends an update and fails the test if it is refused.
func (h *handle) must(update, task string) {
	h.t.Helper()
	if err := h.update(update, command(task)); err != nil {
		h.t.Fatalf("%s %s: %v", update, task, err)
	}
}

// paused reports whether the newest attempt of a task is suspended on its node.
func (c *workerSet) paused(task string) bool {
	for _, call := range c.fake.Calls() {
		if call.Task == task && c.fake.Paused(call.Attempt.ID) {
			return true
		}
	}
	return false
}

// TestPauseTask checks that a running task can be suspended and resumed, and that other tasks cannot.
func TestPauseTask(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}, "stopped": {{Block: true}}, "each": {{Block: true}}})
	h := c.submit(c.input(`{name: steered, tasks: {
		a: {type: shell, spec: {command: x}}, stopped: {type: shell, spec: {command: x}, continueOnError: true},
		after: {type: shell, spec: {command: x}, dependsOn: [a]}, ok: {type: approval},
		each: {type: shell, spec: {command: x}, parallel: 3, batch: 3}}}`))
	h.until("a", func(x *v1.Task) bool { return x.GetError() != "" })
	refused := func(update, task, text string) {
		t.Helper()
		wantRefused(t, h.update(update, command(task)), names.TaskStateError, text)
	}
	refused(names.PauseTaskUpdate, "a", "task a is not running (queued): hold it with `switchyard runs hold`")
	refused(names.PauseTaskUpdate, "after", "not running (pending)")
	refused(names.ResumeTaskUpdate, "a", "task a is queued; it is not paused by a person")
	h.until("ok", func(x *v1.Task) bool { return x.GetState() == "paused" })
	refused(names.PauseTaskUpdate, "ok", "waits for approval")
	refused(names.ResumeTaskUpdate, "ok", "approved or rejected, not resumed")
	wantRefused(t, h.update(names.PauseTaskUpdate, command("nobody")), names.UnknownTaskError, "nobody")
	c.start("n")
	for _, task := range []string{"a", "stopped", "each"} {
		c.running(task)
	}
	refused(names.PauseTaskUpdate, "each", "fanned out: name one of its instances, such as each[0]")
	refused(names.PauseTaskUpdate, "each[1]", "waits in its batch for its turn")
	for _, task := range []string{"a", "stopped", "each[0]"} {
		h.must(names.PauseTaskUpdate, task)
	}
	refused(names.PauseTaskUpdate, "a", "paused already")
	run := h.status(&v1.StatusRequest{}).GetRun()
	if a := run.Tasks["a"]; a.GetState() != "paused" || a.GetReason() != "suspended" || a.GetError() != "by me: for a test" || !c.paused("a") {
		t.Errorf("a is %v", a)
	}
	each := run.Tasks["each"]
	if each.GetCounts()["paused"] != 1 || len(each.GetInstances()) != 3 || !c.paused("each") {
		t.Errorf("each is %v", each)
	}
	for _, i := range each.GetInstances() {
		if (i.GetState() == "paused") != (i.GetIndex() == 0) {
			t.Errorf("each is %v", each)
		}
	}
	c.fake.Release("each") // would end an attempt that is not suspended
	h.must(names.CancelTaskUpdate, "stopped")
	h.until("stopped", func(x *v1.Task) bool { return x.GetState() == "cancelled" })
	refused(names.ResumeTaskUpdate, "stopped", "task stopped is cancelled")
	if !c.paused("a") || !c.paused("each") {
		t.Error("it continues by itself")
	}
	for _, task := range []string{"a", "each[0]"} {
		h.must(names.ResumeTaskUpdate, task)
	}
	refused(names.ResumeTaskUpdate, "a", "not paused by a person")
	c.fake.Release("a")
	h.until("after", func(x *v1.Task) bool { return x.GetState() == "completed" })
	refused(names.PauseTaskUpdate, "a", "task a is completed; it has ended")
	h.must(names.ApproveUpdate, "ok")
	want(t, h.wait(), "completed", map[string]string{"a": "completed", "each": "completed", "stopped": "cancelled task_cancelled"})
	if c.calls()["a"] != 1 || c.calls()["each"] != 3 {
		t.Errorf("calls %v", c.calls())
	}
	if got := h.lifecycle("a", 1); !strings.Contains(got, "assigned paused resumed") || !strings.HasSuffix(got, "completed") {
		t.Errorf("events of a: %s", got)
	}
	replay(t, "paused", limits.Run{}, h.history(""))
}

// TestPauseOnANodeThatIsGone checks that an unreachable node is reported, and that a pause that may have taken effect
// can be undone.
func TestPauseOnANodeThatIsGone(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}})
	l := c.distant("far")
	h := c.submit(c.input(`{name: steered, tasks: {a: {type: shell, spec: {command: x}, heartbeatTimeout: 2m}}}`))
	c.running("a")
	l.cut()
	wantRefused(t, h.update(names.PauseTaskUpdate, command("a")), names.TaskStateError, "did not answer in time")
	l.mend()
	if a := h.status(&v1.StatusRequest{}).GetRun().Tasks["a"]; a.GetState() != "assigned" {
		t.Errorf("a is %v", a)
	}
	h.must(names.ResumeTaskUpdate, "a")
	c.fake.Release("a")
	want(t, h.wait(), "completed", map[string]string{"a": "completed"})
}

// TestKill checks that a killed task fails as killed in any state and is never retried.
func TestKill(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"running": {{Block: true}}, "paused": {{Block: true}}, "backoff": {fake.Exit(1)}, "each": {{Block: true}}})
	h := c.submit(c.input(fmt.Sprintf(`{name: killed, tasks: {
		first: {type: shell, spec: {command: x}}, pending: {type: shell, spec: {command: x}, dependsOn: [running]},
		held: {type: shell, spec: {command: x}}, ok: {type: approval}, child: {type: run, spec: {definition: %s}},
		running: {type: shell, spec: {command: x}}, paused: {type: shell, spec: {command: x}},
		nowhere: {type: shell, spec: {command: x}, constraints: {nodeLabels: [nowhere]}},
		backoff: {type: shell, spec: {command: x}, retry: {backoffMs: 3600000, maxBackoffMs: 3600000}},
		each: {type: shell, spec: {command: x}, parallel: 4, concurrency: 2},
		below: {type: shell, spec: {command: x}, dependsOn: [running], onFailure: run}}}`, c.childDefinition("inner", "running", ""))))
	h.must(names.HoldUpdate, "held")
	c.start("n")
	for _, task := range []string{"running", "paused", "each"} {
		c.running(task)
	}
	h.until("ok", func(x *v1.Task) bool { return x.GetState() == "paused" })
	h.until("child", func(x *v1.Task) bool { return x.GetState() == "running" })
	h.until("first", func(x *v1.Task) bool { return x.GetState() == "completed" })
	h.until("backoff", func(x *v1.Task) bool { return x.GetScheduledAfter() != nil })
	h.until("nowhere", func(x *v1.Task) bool { return x.GetError() != "" })
	h.must(names.PauseTaskUpdate, "paused")
	wantRefused(t, h.update(names.KillTaskUpdate, command("first")), names.TaskStateError, "task first is completed; it has ended")
	tasks := []string{"pending", "held", "ok", "child", "running", "paused", "nowhere", "backoff", "each"}
	for _, task := range tasks {
		h.must(names.KillTaskUpdate, task)
	}
	run := h.wait()
	ends := map[string]string{"first": "completed", "below": "completed"}
	for _, task := range tasks {
		ends[task] = "killed killed"
		if x := run.Tasks[task]; x.GetError() != "killed by me: for a test" {
			t.Errorf("%s: %v", task, x)
		}
	}
	want(t, run, "failed", ends)
	if !strings.Contains(run.GetError(), "was killed: killed by me: for a test") {
		t.Errorf("the run: %s", run.GetError())
	}
	if a := run.Tasks["running"].GetAttempts(); len(a) != 1 || a[0].GetState() != "killed" || a[0].GetReason() != "killed" {
		t.Errorf("attempts of running: %v", a)
	}
	if n := run.Tasks["each"].GetCounts()["killed"]; n != 4 {
		t.Errorf("each: %v", run.Tasks["each"].GetCounts())
	}
	if n := c.calls(); n["backoff"] != 1 || n["running"] > 2 || n["held"] != 0 || n["each"] > 2 { // one of the child's instances may be among them
		t.Errorf("calls %v", n)
	}
	if got := h.lifecycle("running", 1); got != "submitted queued assigned started killed" {
		t.Errorf("events of running: %s", got)
	}
	replay(t, "killed", limits.Run{}, h.history(""))
}

// TestKillRacesTheEnd checks that a task has exactly one end and no retry when a kill races the end of its program.
func TestKillRacesTheEnd(t *testing.T) { killRacesTheEnd(t, 12) }

func TestLongKillRacesTheEnd(t *testing.T) {
	testneeds.Long(t)
	killRacesTheEnd(t, 60)
}

func killRacesTheEnd(t *testing.T, n int) {
	t.Parallel()
	s := script{}
	def := &v1.Definition{Name: "race", Tasks: map[string]*v1.TaskDefinition{}}
	backoff, none := int32(3_600_000), int32(0)
	for i := range n {
		name := fmt.Sprintf("t%03d", i)
		task := shellTask()
		task.HeartbeatTimeout = "10m" // keeps a slow machine from moving any of them
		task.Retry = &v1.RetryPolicy{BackoffMs: &backoff, MaxBackoffMs: &backoff}
		if i%4 == 3 {
			task.Retry.MaxRetries = &none
		}
		s[name] = []fake.Step{{Block: true, Result: fake.Exit(i % 2).Result}}
		def.Tasks[name] = task
	}
	c := shared(t).workers(t, s)
	c.start("n", func(cfg *NodeConfig) { cfg.MaxParallel = n })
	h := c.submit(c.inputOf(def))
	if err := c.fake.Await(within(t), func(_ []fake.Call, running map[string]int) bool { return len(running) == n }); err != nil {
		t.Fatal(err)
	}
	crowd := make(chan struct{}, 8) // a run accepts ten concurrent updates
	var wg sync.WaitGroup
	for name := range def.Tasks {
		wg.Go(func() {
			crowd <- struct{}{}
			defer func() { <-crowd }()
			go c.fake.Release(name)
			err := h.update(names.KillTaskUpdate, command(name))
			// The last update may arrive while the run closes.
			if err != nil && !strings.Contains(err.Error(), "ended") && !strings.Contains(err.Error(), "closing") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	run := h.wait()
	got := map[string]int{}
	for name, task := range run.Tasks {
		got[task.GetState()]++
		switch s := task.GetState(); {
		case s == "killed" && task.GetReason() == "killed", s == "completed" && task.GetResult().GetExitCode() == 0:
		case s == "failed" && task.GetReason() == "exit_code" && strings.TrimLeft(name, "t0") != "" && def.Tasks[name].Retry.MaxRetries != nil:
		default:
			t.Errorf("%s ended as %s, %s", name, s, task.GetReason())
		}
		if calls := c.calls()[name]; calls != 1 {
			t.Errorf("%s ran %d times", name, calls)
		}
	}
	t.Log(got)
}

// TestSteeringOfDetachedAttempts checks that an attempt suspended by a user stays so across executions of the run, and
// that a killed one ends as killed, whenever the kill arrives.
func TestSteeringOfDetachedAttempts(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: detachLimits()})
	c := y.workers(t, script{"long": {{Block: true}}, "doomed": {{Block: true}}})
	c.start("n")
	h := c.submit(c.inputOf(chainBeside(40, map[string]*v1.TaskDefinition{"long": shellTask(), "doomed": shellTask()})))
	c.running("long")
	c.running("doomed")
	h.must(names.PauseTaskUpdate, "long")
	eventually(t, "another execution", func() bool { return len(h.executions()) > 1 })
	h.must(names.KillTaskUpdate, "doomed")
	h.until("t39", func(x *v1.Task) bool { return x.GetState() == "completed" })
	long := h.until("long", func(x *v1.Task) bool { return x.GetStartedAt() != nil })
	if long.GetState() != "paused" || long.GetError() != "by me: for a test" || !c.paused("long") {
		t.Errorf("long is %v", long)
	}
	executions := h.executions()
	if len(executions) < 3 {
		t.Errorf("%d executions", len(executions))
	}
	h.must(names.ResumeTaskUpdate, "long")
	c.fake.Release("long")
	want(t, h.wait(), "failed", map[string]string{"long": "completed", "doomed": "killed killed", "t39": "completed"})
	if n := c.calls(); n["long"] != 1 || n["doomed"] != 1 {
		t.Errorf("calls %v", n)
	}
	for i, execution := range executions[:2] {
		replay(t, fmt.Sprintf("continued-paused-%d", i), detachLimits(), h.history(execution))
	}
}

// TestSteeringOfALargeFanOut checks that instances in children can be controlled there, and are killed with their task.
func TestSteeringOfALargeFanOut(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, script{"each": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(`{name: large, tasks: {each: {type: shell, spec: {command: x}, parallel: 10}}}`))
	err := c.fake.Await(within(t), func(_ []fake.Call, running map[string]int) bool { return running["each"] == 10 })
	if err != nil {
		t.Fatal(err)
	}
	child := h.child(0, "each", 4)
	wantRefused(t, h.update(names.PauseTaskUpdate, command("each[6]")), names.UnknownTaskError, "each[6]")
	child.must(names.PauseTaskUpdate, "each[6]")
	if i := h.page(child.id, &v1.InstancesRequest{Task: "each", From: 6}).GetInstances()[0]; i.GetState() != "paused" || i.GetReason() != "suspended" {
		t.Errorf("each[6] is %v", i)
	}
	h.until("each", func(x *v1.Task) bool { return x.GetCounts()["paused"] == 1 })
	child.must(names.ResumeTaskUpdate, "each[6]")
	child.must(names.PauseTaskUpdate, "each[7]")
	h.must(names.KillTaskUpdate, "each")
	run := h.wait()
	want(t, run, "failed", map[string]string{"each": "killed killed"})
	if n := run.Tasks["each"].GetCounts()["killed"]; n != 10 {
		t.Errorf("each: %v", run.Tasks["each"].GetCounts())
	}
	replay(t, "part-killed", inParts, child.history(""))
	replay(t, "parts-killed", inParts, h.history(""))
}

// TestHeartbeatTimeoutOfATask checks that a task can have its own heartbeat time-out.
func TestHeartbeatTimeoutOfATask(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	h := c.submit(c.input(`{name: patient, tasks: {
		a: {type: shell, spec: {command: x}, heartbeatTimeout: 2m}, b: {type: shell, spec: {command: x}},
		each: {type: shell, spec: {command: x}, parallel: 2, batch: 2, heartbeatTimeout: 30s}}}`))
	want(t, h.wait(), "completed", nil)
	got := map[string]time.Duration{}
	for _, e := range h.history("") {
		if s := scheduled(e, names.ExecuteActivity); s != nil {
			got[s.GetActivityId()] = s.GetHeartbeatTimeout().AsDuration()
		}
	}
	if fmt.Sprint(got) != "map[a#1:2m0s b#1:15s each[0]#1:30s]" {
		t.Errorf("heartbeat time-outs %v", got)
	}
}

// scheduled returns the attributes of an event that schedules an activity of the given type, or nil for any other
// event.
func scheduled(e *historypb.HistoryEvent, activity string) *historypb.ActivityTaskScheduledEventAttributes {
	if a := e.GetActivityTaskScheduledEventAttributes(); e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED && a.GetActivityType().GetName() == activity {
		return a
	}
	return nil
}
