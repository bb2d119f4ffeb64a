package workers

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// wantRefused checks that an update was refused with an error of the given kind and text.
func wantRefused(t *testing.T, err error, kind, text string) {
	t.Helper()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.Type() != kind || !strings.Contains(app.Message(), text) {
		t.Errorf("refused with %v, want %s: ...%s...", err, kind, text)
	}
}

// TestRetryWhen checks that retry.when decides whether a failed attempt is retried.
func TestRetryWhen(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{
		"net":  {{Stderr: "connection reset\n", Result: fake.Exit(1).Result}, {}},
		"code": {fake.Exit(2), fake.Exit(64), {}},
	})
	c.start("n")
	h := c.submit(c.input(`{name: when, tasks: {
		net: {type: shell, spec: {command: x}, retry: {backoffMs: 1, when: "attempt.stderr.contains('reset')"}},
		code: {type: shell, spec: {command: x}, retry: {backoffMs: 1, when: "attempt.exitCode < 64 && attempt.reason == 'exit_code'"}}}}`))
	run := h.wait()
	want(t, run, "failed", map[string]string{"net": "completed", "code": "failed exit_code"})
	if c.calls()["net"] != 2 || c.calls()["code"] != 2 || run.Tasks["code"].GetAttempt() != 1 {
		t.Errorf("executions: %v", c.calls())
	}
	replay(t, "retry-when", limits.Run{}, h.history(""))
}

// TestCache checks that a completed result is reused under the same key, also by another run, and that a failed one
// never is.
func TestCache(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Stdout: "slow", Output: "n=1", ContextUpdate: "seen=1"}}, "bad": {fake.Exit(1)}})
	c.start("n")
	document := fmt.Sprintf(`{name: cached-%d, tasks: {
		a: {type: shell, spec: {command: x}, cache: {key: "'v' + workflow.input.version", ttl: 1h}},
		bad: {type: shell, spec: {command: x}, cache: {key: "'v'"}, continueOnError: true, retry: {maxRetries: 0}},
		each: {type: shell, spec: {command: x}, foreach: [p, q], cache: {key: "'v'"}},
		b: {type: shell, spec: {command: x}, dependsOn: [a], condition: "parent.a.output.n == '1' && workflow.context.seen == '1'"}}}`, len(c.label))
	version := func(v string) *v1.RunInput {
		in := c.input(document)
		in.Input = structOf(map[string]any{"version": v})
		return in
	}
	first := c.submit(version("1"))
	want(t, first.wait(), "completed", map[string]string{"a": "completed", "b": "completed", "bad": "failed"})
	second := c.submit(version("1"))
	run := second.wait()
	want(t, run, "completed", map[string]string{"a": "completed", "b": "completed", "bad": "failed"})
	if a := run.Tasks["a"]; a.GetCachedFrom() != first.id || a.GetResult().GetStdout() != "slow" {
		t.Errorf("a is %v", a)
	}
	if each := run.Tasks["each"].GetInstances(); len(each) != 2 || each[1].GetCachedFrom() != first.id {
		t.Errorf("the instances are %v", each)
	}
	if n := c.calls(); n["a"] != 1 || n["bad"] != 2 || n["b"] != 2 {
		t.Errorf("executions: %v", n)
	}
	for _, e := range second.stored(0) {
		if e.GetTask() == "a" && e.GetEvent() == "completed" && e.GetDetail() != "cached from "+first.id {
			t.Errorf("event %v", e)
		}
	}
	third := c.submit(version("2"))
	want(t, third.wait(), "completed", nil)
	if n := c.calls(); n["a"] != 2 {
		t.Errorf("executions: %v", n)
	}
	replay(t, "cache-miss", limits.Run{}, first.history(""))
	replay(t, "cache-hit", limits.Run{}, second.history(""))
}

// TestDeadlines checks that deadlines end a task with all its attempts, a fan-out, and a run.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"slow": {{Block: true}}, "wide": {{}, {Block: true}}, "fails": {fake.Exit(1)}})
	c.start("n")
	h := c.submit(c.input(`{name: deadlines, tasks: {
		slow: {type: shell, spec: {command: x}, deadline: 900ms, retry: {backoffMs: 1}},
		fails: {type: shell, spec: {command: x}, deadline: 1s, retry: {maxRetries: 9, backoffMs: 60000}},
		wide: {type: shell, spec: {command: x}, parallel: 3, concurrency: 1, deadline: 30s},
		fine: {type: shell, spec: {command: x}, deadline: 1h},
		after: {type: shell, spec: {command: x}, dependsOn: [fine]}}}`))
	run := h.wait()
	want(t, run, "failed", map[string]string{"slow": "failed deadline", "fails": "failed deadline", "wide": "failed deadline", "fine": "completed", "after": "completed"})
	// A slow machine may not start them in time.
	if c.calls()["slow"] > 1 || c.calls()["fails"] > 1 || !strings.Contains(run.Tasks["slow"].GetError(), "900ms") {
		t.Errorf("executions %v, %s", c.calls(), summary(run))
	}
	if got := instances(run.Tasks["wide"]); got != "completed failed failed" {
		t.Errorf("wide: %s", got)
	}
	replay(t, "deadline", limits.Run{}, h.history(""))

	h = c.submit(c.input(`{name: deadline, deadline: 400ms, tasks: {slow: {type: shell, spec: {command: x}}, last: {type: shell, spec: {command: x}, dependsOn: [slow]}}}`))
	run = h.wait()
	want(t, run, "failed", map[string]string{"slow": "cancelled", "last": "cancelled"})
	if run.GetReason() != "deadline" || !strings.Contains(run.GetError(), "400ms") {
		t.Errorf("the run ended so: %s %s", run.GetReason(), run.GetError())
	}
	replay(t, "deadline-run", limits.Run{}, h.history(""))
}

// TestMissedDeadlineNamesTheWait uses tasks that no node can take until their deadlines, or the run's, have passed.
func TestMissedDeadlineNamesTheWait(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{})
	c.start("n")
	task := func(more string) string {
		return `{type: shell, spec: {command: x}, constraints: {nodeLabels: [no-such-label]}` + more + `}`
	}
	const why = "no-such-label"
	run := c.submit(c.input(`{name: waits, tasks: {one: ` + task(", deadline: 5s") + `, each: ` + task(", deadline: 5s, parallel: 2") + `}}`)).wait()
	want(t, run, "failed", map[string]string{"one": "failed deadline", "each": "failed deadline"})
	for name, want := range map[string]string{"one": "within its deadline of 5s: no node", "each": "within its deadline of 5s; each[0] waited: no node"} {
		if got := run.Tasks[name].GetError(); !strings.Contains(got, want) || !strings.Contains(got, why) {
			t.Errorf("%s: %s", name, got)
		}
	}
	run = c.submit(c.input(`{name: waits, deadline: 5s, tasks: {one: ` + task("") + `}}`)).wait()
	if got := run.GetError(); !strings.Contains(got, "within its deadline of 5s; one waited: no node") || !strings.Contains(got, why) {
		t.Errorf("the run: %s", got)
	}
}

// TestPauseHoldAndCancelTask checks that a paused run starts nothing, a held task does not start, and cancelling a task
// affects only that task.
func TestPauseHoldAndCancelTask(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}, "doomed": {{Block: true}}})
	h := c.submit(c.input(`{name: steered, tasks: {
		a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]},
		each: {type: shell, spec: {command: x}, dependsOn: [a], parallel: 3},
		c: {type: shell, spec: {command: x}, dependsOn: [b]},
		doomed: {type: shell, spec: {command: x}}}}`))
	// There is no node yet, and a task that waits for one can be held.
	h.until("a", func(x *v1.Task) bool { return x.GetError() != "" })
	command := func(task string) *v1.TaskCommand { return &v1.TaskCommand{Task: task, Reason: "for a test", By: "me"} }
	do := func(update string, arg any) {
		t.Helper()
		if err := h.update(update, arg); err != nil {
			t.Fatal(err)
		}
	}
	do(names.HoldUpdate, command("a"))
	do(names.HoldUpdate, command("each"))
	wantRefused(t, h.update(names.HoldUpdate, command("a")), names.TaskStateError, "held already")
	wantRefused(t, h.update(names.HoldUpdate, command("nobody")), names.UnknownTaskError, "nobody")
	wantRefused(t, h.update(names.ReleaseUpdate, command("b")), names.TaskStateError, "not held")
	wantRefused(t, h.update(names.ApproveUpdate, command("b")), names.TaskStateError, "type shell")
	wantRefused(t, h.update(names.ResumeUpdate, &v1.RunCommand{}), names.TaskStateError, "not paused")
	c.start("n")
	c.running("doomed")
	wantRefused(t, h.update(names.HoldUpdate, command("doomed")), names.TaskStateError, "only a task that has not started")
	do(names.CancelTaskUpdate, command("doomed"))
	h.until("doomed", func(x *v1.Task) bool { return x.GetState() == "cancelled" })
	wantRefused(t, h.update(names.CancelTaskUpdate, command("doomed")), names.TaskStateError, "ended")
	if a := h.status(&v1.StatusRequest{}).GetRun().GetTasks()["a"]; !a.GetHeld() || a.GetState() != "queued" || c.calls()["a"] != 0 {
		t.Errorf("a is %v", a)
	}
	do(names.PauseUpdate, &v1.RunCommand{Reason: "lunch"})
	wantRefused(t, h.update(names.PauseUpdate, &v1.RunCommand{}), names.TaskStateError, "paused already")
	do(names.ReleaseUpdate, command("a"))
	if run := h.status(&v1.StatusRequest{}).GetRun(); run.GetState() != "paused" || run.GetTasks()["a"].GetHeld() || c.calls()["a"] != 0 {
		t.Errorf("the run is %s", summary(run))
	}
	do(names.ResumeUpdate, &v1.RunCommand{})
	c.running("a")
	c.fake.Release("a")
	h.until("c", func(x *v1.Task) bool { return x.GetState() == "completed" })
	if run := h.status(&v1.StatusRequest{}).GetRun(); run.GetState() != "running" || run.GetTasks()["each"].GetState() != "pending" || !run.GetTasks()["each"].GetHeld() {
		t.Errorf("the run is %s", summary(run))
	}
	do(names.ReleaseUpdate, command("each"))
	want(t, h.wait(), "completed", map[string]string{"doomed": "cancelled task_cancelled", "each": "completed", "c": "completed"})
	if got := h.lifecycle("", 1); got != "submitted paused resumed completed" {
		t.Errorf("events of the run: %s", got)
	}
	if got := h.lifecycle("a", 1); !strings.HasPrefix(got, "submitted queued held") || !strings.Contains(got, " released ") {
		t.Errorf("events of a: %s", got)
	}
	replay(t, "steered", limits.Run{}, h.history(""))
}

// TestApproval checks that a task of type approval waits for a decision.
func TestApproval(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	in := c.input(`{name: approval, context: {what: v2}, tasks: {
		build: {type: shell, spec: {command: x}},
		ok: {type: approval, spec: {message: "deploy ${{ workflow.context.what }}?"}, dependsOn: [build]},
		deploy: {type: shell, spec: {command: x}, dependsOn: [ok], condition: "parent.ok.output.by == 'me'"},
		no: {type: approval, dependsOn: [build], continueOnError: true}}}`)
	h := c.submit(in)
	ok := h.until("ok", func(x *v1.Task) bool { return x.GetState() == "paused" })
	if ok.GetReason() != "approval" || ok.GetError() != "deploy v2?" {
		t.Errorf("ok is %v", ok)
	}
	h.until("no", func(x *v1.Task) bool { return x.GetState() == "paused" })
	if state := h.status(&v1.StatusRequest{}).GetRun().GetState(); state != "pending_approval" {
		t.Errorf("the run is %s", state)
	}
	if err := h.update(names.ApproveUpdate, &v1.TaskCommand{Task: "ok", By: "me"}); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, h.update(names.ApproveUpdate, &v1.TaskCommand{Task: "ok"}), names.TaskStateError, "ok")
	if err := h.update(names.RejectUpdate, &v1.TaskCommand{Task: "no", Reason: "too late"}); err != nil {
		t.Fatal(err)
	}
	run := h.wait()
	want(t, run, "completed", map[string]string{"ok": "completed", "deploy": "completed", "no": "rejected"})
	if got := run.Tasks["no"].GetError(); !strings.Contains(got, "too late") {
		t.Errorf("rejected: %s", got)
	}
	if got := h.lifecycle("ok", 1); got != "submitted queued paused approved completed" {
		t.Errorf("events of ok: %s", got)
	}
	data := map[string]map[string]any{}
	for _, e := range h.stored(0) {
		data[e.GetTask()+" "+e.GetEvent()] = e.GetData().AsMap()
	}
	for event, want := range map[string]map[string]any{
		"ok paused": {"reason": "approval", "message": "deploy v2?"}, "ok approved": {"by": "me"}, "no rejected": {"reason": "too late"},
	} {
		if !maps.Equal(data[event], want) {
			t.Errorf("data of %s: %v, want %v", event, data[event], want)
		}
	}
	replay(t, "approval", limits.Run{}, h.history(""))
}

// TestMaxParallelOfARun checks that maxParallel applies to the whole run.
func TestMaxParallelOfARun(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}, "b": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(`{name: narrow, maxParallel: 1, tasks: {
		a: {type: shell, spec: {command: x}, priority: 5}, b: {type: shell, spec: {command: x}}}}`))
	c.running("a")
	b := h.until("b", func(x *v1.Task) bool { return x.GetState() == "queued" })
	if !strings.Contains(b.GetError(), "maxParallel") {
		t.Errorf("b waits: %v", b)
	}
	c.fake.Release("a")
	c.running("b")
	c.fake.Release("b")
	want(t, h.wait(), "completed", nil)
}

// TestRejectedFanOutWaitsNoMore checks that a fan-out of approvals that exceeds its maxFailures waits for no further
// decision.
func TestRejectedFanOutWaitsNoMore(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	h := c.submit(c.input(`{name: approvals, tasks: {each: {type: approval, parallel: 3}}}`))
	eventually(t, "all wait", func() bool {
		return h.status(&v1.StatusRequest{}).GetRun().GetTasks()["each"].GetCounts()["paused"] == 3
	})
	if err := h.update(names.RejectUpdate, &v1.TaskCommand{Task: "each[1]", By: "me"}); err != nil {
		t.Fatal(err)
	}
	run := h.wait()
	want(t, run, "failed", map[string]string{"each": "failed instances"})
	if counts := run.GetTasks()["each"].GetCounts(); counts["rejected"] != 1 || counts["skipped"] != 2 {
		t.Errorf("instances %v", counts)
	}
}
