package run_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// finallyTask returns a `finally` of one task that the nodes of the test accept.
func finallyTask(c *workertest.Nodes, name string) string {
	return fmt.Sprintf(`finally: {%s: {type: shell, spec: {command: x}, resources: {cores: 0}, constraints: {nodeLabels: [%s]}}},`, name, c.Label)
}

// TestCancellationReachesFinallyOfChildRuns checks that a cancelled run waits for the finally of its child runs, and that --now, or a
// cancellation of its own finally, ends theirs.
func TestCancellationReachesFinallyOfChildRuns(t *testing.T) {
	t.Parallel()
	now := &historyv1.RunCommand{By: "ann", RequestId: "2", Now: true}
	second := &historyv1.RunCommand{By: "ann", RequestId: "2"}
	for name, test := range map[string]struct {
		first, second *historyv1.RunCommand // while task in runs, and then while its finally does, if it is not in finally itself
		isFinally     bool                  // the child run is in finally
		child, last   string                // the states of the child's finally and of the task after the child
	}{
		"plain":                  {&historyv1.RunCommand{By: "ann", RequestId: "1"}, nil, false, "completed", "completed"},
		"then with --now":        {&historyv1.RunCommand{By: "ann", RequestId: "1"}, now, false, "cancelled", "cancelled"},
		"with --now":             {now, nil, false, "cancelled", "cancelled"},
		"of finally":             {&historyv1.RunCommand{By: "ann", RequestId: "1"}, second, true, "cancelled", "cancelled"},
		"second, before finally": {&historyv1.RunCommand{By: "ann", RequestId: "1"}, second, false, "completed", "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"in": {{Block: true}}, "clean": {{Block: true}}})
			c.Start("n")
			child := fmt.Sprintf(`child: {type: run, spec: {definition: %s}}`, childDefinition(c, "inner", "in", finallyTask(c, "clean")))
			tasks, finally := child, `last: {type: shell, spec: {command: x}}`
			if test.isFinally {
				tasks, finally = `a: {type: shell, spec: {command: x}}`, child+`, last: {type: shell, spec: {command: x}, dependsOn: [child]}`
			}
			h := c.Submit(c.Input(fmt.Sprintf(`{name: parent, tasks: {%s}, finally: {%s}}`, tasks, finally)))
			c.AwaitRunning("in")
			inner := childRun(c, h.AwaitTask("child", func(x *v1.Task) bool { return x.GetChildRun() != "" }))
			h.Cancel(test.first)
			if !test.isFinally && (test.child == "completed" || test.second != nil) {
				c.AwaitRunning("clean")
				if state := h.AwaitTask("last", func(*v1.Task) bool { return true }).GetState(); state != v1.TaskPending {
					t.Errorf("last is %s while the finally of the child runs", state)
				}
			}
			if test.second != nil {
				h.Cancel(test.second)
			}
			if test.child == "completed" {
				h.Status(&historyv1.StatusRequest{}) // the run has received the cancellations
				c.Fake.Release("clean")
			}
			run := h.Wait()
			workertest.CheckRun(t, inner.Wait(), "cancelled", map[string]string{"in": "cancelled", "clean": test.child})
			workertest.CheckRun(t, run, "cancelled", map[string]string{"child": "cancelled", "last": test.last})
		})
	}
}

// TestTaskInFinallyWaitsForItsLock checks that tasks in finally take locks in turn, also one that their own run has held, and that the
// end of finally ends the wait.
func TestTaskInFinallyWaitsForItsLock(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	c := y.Nodes(t, workertest.Script{"a": {{Block: true}}, "clean": {{Block: true}}})
	c.Start("n")
	lock := uniqueLock()
	document := fmt.Sprintf(`{name: locks, %%s tasks: {%%s: {type: shell, spec: {command: x}%%s}}, finally: {clean: {type: shell, spec: {command: x}, mutex: %s}}}`, lock)
	first := c.Submit(c.Input(fmt.Sprintf(document, "", "a", ", mutex: "+lock)))
	c.AwaitRunning("a")
	first.Cancel(&historyv1.RunCommand{By: "ann", RequestId: "1"})
	c.AwaitRunning("clean")
	waits := func(h *workertest.Handle) {
		h.AwaitTask("clean", func(x *v1.Task) bool {
			return x.GetState() == v1.TaskQueued && x.GetError() == "waits for the lock "+lock+", held by clean of "+first.ID
		})
	}
	second, impatient, ended := c.Submit(c.Input(fmt.Sprintf(document, "", "b", ""))), c.Submit(c.Input(fmt.Sprintf(document, "finallyTimeout: 1s,", "b", ""))), c.Submit(c.Input(fmt.Sprintf(document, "", "b", "")))
	waits(second)
	waits(ended)
	ended.Cancel(&historyv1.RunCommand{By: "ann", Now: true})
	workertest.CheckRun(t, ended.Wait(), "cancelled", map[string]string{"b": "completed", "clean": "cancelled"})
	if run := impatient.Wait(); run.GetReason() != v1.ReasonFinallyFailed || run.GetTasks()["clean"].GetState() != v1.TaskCancelled {
		t.Errorf("with a time-out: %s", workertest.Summary(run))
	}
	c.Fake.Release("clean")
	workertest.CheckRun(t, first.Wait(), "cancelled", map[string]string{"a": "cancelled", "clean": "completed"})
	workertest.CheckRun(t, second.Wait(), "completed", map[string]string{"b": "completed", "clean": "completed"})
	y.AwaitLockEnd(t, names.TaskLock(lock))
}

// TestApprovalInFinally checks that an approval in finally waits for a person, also in a cancelled run, and ends by its time-out.
func TestApprovalInFinally(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cancelled   bool
		spec        string
		decide      string // update that decides, or "" to wait for the time-out
		state       string // and the reason of the run
		ok, destroy string
	}{
		"approved":                {false, "{}", names.ApproveUpdate, "completed", "completed", "completed"},
		"approved after a cancel": {true, "{}", names.ApproveUpdate, "cancelled cancelled", "completed", "completed"},
		"rejected":                {false, "{}", names.RejectUpdate, "failed finally_failed", "rejected", "skipped"},
		"rejected after a cancel": {true, "{}", names.RejectUpdate, "cancelled cancelled", "rejected", "skipped"},
		"time-out":                {false, "{timeout: 200ms}", "", "failed finally_failed", "rejected", "skipped"},
		"time-out that approves":  {false, "{timeout: 200ms, onTimeout: approve}", "", "completed", "completed", "completed"},
		"time-out after a cancel": {true, "{timeout: 200ms}", "", "cancelled cancelled", "rejected", "skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: test.cancelled}}})
			c.Start("n")
			h := c.Submit(c.Input(fmt.Sprintf(`{name: asks, tasks: {a: {type: shell, spec: {command: x}}}, finally: {
				ok: {type: approval, spec: %s}, destroy: {type: shell, spec: {command: x}, dependsOn: [ok]}}}`, test.spec)))
			if test.cancelled {
				c.AwaitRunning("a")
				h.Cancel(&historyv1.RunCommand{By: "ann", RequestId: "1"})
			}
			if test.decide != "" {
				h.AwaitTask("ok", func(x *v1.Task) bool { return x.GetState() == v1.TaskPaused })
				if err := sendUpdate(h, test.decide, &historyv1.TaskCommand{Task: "ok", By: "me"}); err != nil {
					t.Fatal(err)
				}
			}
			run := h.Wait()
			state, reason, _ := strings.Cut(test.state, " ")
			if workertest.CheckRun(t, run, state, map[string]string{"ok": test.ok, "destroy": test.destroy}); run.GetReason() != reason {
				t.Errorf("the reason is %s: %s", run.GetReason(), run.GetError())
			}
		})
	}
}

// TestResetRunsFinallyAgain checks that a reset to before finally runs it again, and one to a point within it runs the rest of it.
func TestResetRunsFinallyAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		to    func(*workertest.Handle) int64
		tasks int // how often a and b run
	}{
		"to before": {firstWorkflowTask, 2},
		"to within": {lastWorkflowTask, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"c": {{Block: true}}})
			c.Start("n")
			h := c.Submit(c.Input(`{name: resets, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}},
				finally: {c: {type: shell, spec: {command: x}}, d: {type: shell, spec: {command: x}, dependsOn: [c], condition: "tasks.b.state == 'completed'"}}}`))
			c.AwaitRunning("c")
			to := test.to(h)
			c.Fake.Release("c")
			workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"c": "completed", "d": "completed"})
			run := resetRun(h, to).Wait()
			workertest.CheckRun(t, run, "completed", map[string]string{"a": "completed", "b": "completed", "c": "completed", "d": "completed"})
			if calls := c.Calls(); calls["a"] != test.tasks || calls["b"] != test.tasks || calls["d"] != 2 {
				t.Errorf("calls %v", calls)
			}
		})
	}
}

// TestFinallyOfLargeRun checks that finally sees each of 1,000 tasks, and that its attempts carry little of them in the history.
func TestFinallyOfLargeRun(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n", withShell(t))
	var tasks strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&tasks, ", task-with-a-name-%d: {type: shell, spec: {command: x}, dependsOn: [a]}", i)
	}
	h := c.Submit(c.Input(fmt.Sprintf(`{name: large, tasks: {a: {type: shell, spec: {command: exit 1}, retry: {maxRetries: 0}}%s}, finally: {
		c: {type: shell, spec: {command: 'echo "{\"bytes\": $(wc -c <"$SWITCHYARD_INPUT"), \"skipped\": $SKIPPED}" >"$SWITCHYARD_OUTPUT"'},
			env: {SKIPPED: "${{ size(tasks.filter(t, tasks[t].state == 'skipped')) }}"}}}}`, tasks.String())))
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"c": "completed"})
	if out := run.GetTasks()["c"].GetResult().GetOutput().AsMap(); out["skipped"] != 1000.0 || out["bytes"].(float64) > 200e3 {
		t.Errorf("c sees %v", out)
	}
	for _, e := range h.History("") {
		isOfRun := e.GetWorkflowExecutionStartedEventAttributes() != nil || e.GetWorkflowExecutionFailedEventAttributes() != nil
		if !isOfRun && proto.Size(e) > 4<<10 {
			t.Errorf("%v has %d bytes", e.GetEventType(), proto.Size(e))
		}
	}
}
