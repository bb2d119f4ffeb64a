package run_test

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// withFinally is a run of a and b, and of c and d in finally.
const withFinally = `{name: finally, %s tasks: {
	a: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
	b: {type: shell, spec: {command: x}, dependsOn: [a]}},
finally: {
	c: {type: shell, spec: {command: x}, env: {RUN: "${{ run.state }} ${{ run.reason }} ${{ run.failed.join('+') }} ${{ tasks.a.state }}"}, retry: {maxRetries: 1, backoffMs: 1}},
	d: {type: shell, spec: {command: x}, dependsOn: [c], condition: "run.state == 'failed'"}}}`

func TestFinallyRunsHoweverTheTasksEnd(t *testing.T) {
	t.Parallel()
	cancel := func(c *historyv1.RunCommand) func(*workertest.Handle) {
		return func(h *workertest.Handle) {
			h.AwaitRunning("a")
			h.Cancel(c)
		}
	}
	for name, test := range map[string]struct {
		fields string
		a      fake.Step
		act    func(*workertest.Handle)
		state  string // and the reason of the run
		tasks  map[string]string
		sees   string // the variable RUN of c
	}{
		"success":  {"", fake.Step{}, nil, "completed", map[string]string{"a": "completed", "b": "completed", "c": "completed", "d": "skipped condition"}, "completed   completed"},
		"failure":  {"", fake.Exit(1), nil, "failed task_failed", map[string]string{"a": "failed", "b": "skipped", "c": "completed", "d": "completed"}, "failed task_failed a failed"},
		"halt":     {"failurePolicy: halt,", fake.Exit(1), nil, "failed task_failed", map[string]string{"a": "failed", "b": "skipped", "c": "completed", "d": "completed"}, "failed task_failed a failed"},
		"cancel":   {"finallyTimeout: 50m,", fake.Step{Block: true}, cancel(&historyv1.RunCommand{By: "ann", RequestId: "1"}), "cancelled cancelled", map[string]string{"a": "cancelled", "b": "cancelled", "c": "completed", "d": "skipped condition"}, "cancelled cancelled  cancelled"},
		"deadline": {"deadline: 1500ms,", fake.Step{Block: true}, nil, "failed deadline", map[string]string{"a": "cancelled", "b": "cancelled", "c": "completed", "d": "completed"}, "failed deadline  cancelled"},
		"now":      {"", fake.Step{Block: true}, cancel(&historyv1.RunCommand{By: "ann", Now: true}), "cancelled cancelled", map[string]string{"a": "cancelled", "b": "cancelled", "c": "cancelled", "d": "cancelled"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {test.a}, "c": {fake.Exit(1), {}}})
			c.Start("n")
			h := c.Submit(c.Input(fmt.Sprintf(withFinally, test.fields)))
			if test.act != nil {
				test.act(h)
			}
			run := h.Wait()
			if name == "cancel" {
				workertest.Replay(t, "finally", limits.Run{}, h.History(""))
			}
			state, reason, _ := strings.Cut(test.state, " ")
			if workertest.CheckRun(t, run, state, test.tasks); run.GetReason() != reason {
				t.Errorf("the reason of the run is %s: %s", run.GetReason(), run.GetError())
			}
			for _, call := range c.Fake.Calls() {
				if call.Task == "c" && call.Attempt.Env["RUN"] != test.sees {
					t.Errorf("c sees %q", call.Attempt.Env["RUN"])
				}
			}
			if c.Calls()["c"] != 2 && test.sees != "" {
				t.Errorf("c ran %d times; it fails once, and is retried", c.Calls()["c"])
			}
		})
	}
}

// TestOnlyAnExplicitOrderEndsFinally checks which cancellations end finally.
func TestOnlyAnExplicitOrderEndsFinally(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}, "c": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(withFinally, "")))
	c.AwaitRunning("a")
	h.Cancel(&historyv1.RunCommand{By: "ann", Reason: "enough", RequestId: "1"})
	c.AwaitRunning("c")
	for _, again := range []any{&historyv1.RunCommand{By: "ann", RequestId: "1"}, &historyv1.RunCommand{Reason: "with its parent"}, "by temporal"} {
		h.Cancel(again)
	}
	if err := h.Conn.CancelWorkflow(t.Context(), h.ID, ""); err != nil {
		t.Fatal(err)
	}
	mustSteerRun(h, names.PauseUpdate) // the run has received all of these
	if c := h.AwaitTask("c", func(*v1.Task) bool { return true }); v1.IsTaskTerminal(c.GetState()) || !c.GetFinally() {
		t.Fatalf("c is %v", c)
	}
	mustSteerRun(h, names.ResumeUpdate)
	h.Cancel(&historyv1.RunCommand{By: "bob", RequestId: "2"})
	run := h.Wait()
	workertest.CheckRun(t, run, "cancelled", map[string]string{"a": "cancelled", "b": "cancelled", "c": "cancelled", "d": "cancelled"})
	if want := "cancelled by ann: enough"; run.GetError() != want {
		t.Errorf("the run says %q", run.GetError())
	}
}

// TestPauseOfFinallyEndsWithTheRun checks that finally of a run that was paused before it starts once the run is cancelled, or has missed
// its deadline, and that a first cancellation does not end it.
func TestPauseOfFinallyEndsWithTheRun(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string]string{"cancel": "", "deadline": "deadline: 1500ms,"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}, "c": {fake.Exit(1), {}}})
			c.Start("n")
			h := c.Submit(c.Input(fmt.Sprintf(withFinally, fields)))
			c.AwaitRunning("a")
			mustSteerRun(h, names.PauseUpdate)
			if err := sendUpdate(h, names.CancelTaskUpdate, &historyv1.TaskCommand{Task: "a", By: "me"}); err != nil {
				t.Fatal(err)
			}
			h.AwaitTask("b", func(b *v1.Task) bool { return v1.IsTaskTerminal(b.GetState()) })
			if name == "cancel" {
				h.Cancel(&historyv1.RunCommand{By: "ann", RequestId: "1"})
			}
			if run := h.Wait(); run.GetTasks()["c"].GetState() != "completed" {
				t.Errorf("%s", workertest.Summary(run))
			}
		})
	}
}

// TestFinallyFailsACompletedRun checks that a failure in finally fails a run that would have completed, and hides no other.
func TestFinallyFailsACompletedRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fields     string
		a          fake.Step
		c          fake.Step
		reason     string
		error      string
		finalState string
	}{
		"completed": {"", fake.Step{}, fake.Exit(2), "finally_failed", `in finally, task "c" failed: exit code 2`, "dead_letter"},
		"failed":    {"", fake.Exit(1), fake.Exit(2), "task_failed", `task "a" failed: exit code 1`, "dead_letter"},
		"timeout":   {"finallyTimeout: 1s,", fake.Step{}, fake.Step{Block: true}, "finally_failed", "finally did not end within its time-out of 1s", "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {test.a}, "c": {test.c, test.c}})
			c.Start("n")
			run := c.Do(fmt.Sprintf(withFinally, test.fields))
			if run.GetState() != "failed" || run.GetReason() != test.reason || !strings.Contains(run.GetError(), test.error) || run.GetTasks()["c"].GetState() != test.finalState {
				t.Errorf("%s", workertest.Summary(run))
			}
		})
	}
}

// TestRunThatHasNotBegunHasNoFinally checks that a run that was cancelled or rejected before its start runs nothing.
func TestRunThatHasNotBegunHasNoFinally(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{})
	c.Start("n")
	in := c.Input(fmt.Sprintf(withFinally, ""))
	in.NeedsApproval = true
	h := c.Submit(in)
	h.Cancel(nil)
	run := h.Wait()
	workertest.CheckRun(t, run, "cancelled", map[string]string{"a": "cancelled", "b": "cancelled", "c": "cancelled", "d": "cancelled"})
	if len(c.Calls()) > 0 {
		t.Errorf("calls %v", c.Calls())
	}
}

// TestFinallySurvivesContinueAsNewAndRetry runs finally with a fan-out and a child run over several executions, and again in the next
// generations.
func TestFinallySurvivesContinueAsNewAndRetry(t *testing.T) {
	t.Parallel()
	c := workertest.SharedWithin(t, quietLimits).Nodes(t, workertest.Script{"a": {fake.Exit(1), {}}, "b": {{Output: `{"x": 1}`}}})
	c.Start("n")
	in := c.Input(fmt.Sprintf(`{name: finally, failurePolicy: halt, tasks: {
		a: {type: shell, spec: {command: x}, retry: {maxRetries: 0}, dependsOn: [each]}, b: {type: shell, spec: {command: x}},
		each: {type: shell, spec: {command: x}, parallel: 30}},
	finally: {
		many: {type: shell, spec: {command: x}, parallel: 30, env: {X: "${{ tasks.b.output.x }} ${{ tasks.each.completed }}"}},
		child: {type: run, spec: {definition: %s}, dependsOn: [many]}}}`, childDefinition(c, "inner", "in", "")))
	h := c.Submit(in)
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"a": "failed", "b": "completed", "many": "completed", "child": "completed"})
	if len(executionsOf(h)) < 2 || c.Calls()["many"] != 30 || c.Calls()["in"] != 1 {
		t.Errorf("%d executions, calls %v", len(executionsOf(h)), c.Calls())
	}
	for _, call := range c.Fake.Calls() {
		if call.Task == "many" && call.Attempt.Env["X"] != "1 30" {
			t.Fatalf("an instance of many sees %q", call.Attempt.Env["X"])
		}
	}
	again := h.Rerun(in, 1, &historyv1.Rerun{FinallyOnly: true})
	workertest.CheckRun(t, again.Wait(), "failed", map[string]string{"a": "failed", "many": "completed", "child": "completed"})
	if c.Calls()["many"] != 60 || c.Calls()["a"] != 1 {
		t.Errorf("calls %v", c.Calls())
	}
}
