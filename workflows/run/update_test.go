package run_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// sendUpdate sends an update to the open run. Like a gateway, it sends the update again while the run continues as new.
func sendUpdate(h *workertest.Handle, name string, arg any) (err error) {
	h.T.Helper()
	workertest.Eventually(h.T, h.ID+" accepts or refuses "+name, func() bool {
		update, sendErr := h.Conn.UpdateWorkflow(h.T.Context(), client.UpdateWorkflowOptions{
			WorkflowID: h.ID, UpdateName: name, Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err = sendErr; err == nil {
			err = update.Get(h.T.Context(), nil)
		}
		app, ok := errors.AsType[*temporal.ApplicationError](err)
		return !ok || app.Type() != names.RunContinuingError
	})
	return err
}

// wantRefused checks that an update was refused with an error of the given kind and text.
func wantRefused(t *testing.T, err error, kind, text string) {
	t.Helper()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.Type() != kind || !strings.Contains(app.Message(), text) {
		t.Errorf("refused with %v, want %s: ...%s...", err, kind, text)
	}
}

// retryTask retries a dead letter of the open run.
func retryTask(h *workertest.Handle, task string) error {
	h.T.Helper()
	return sendUpdate(h, names.RetryUpdate, &historyv1.RetryTaskRequest{Task: task})
}

// command returns a user's command for a task.
func command(task string) *historyv1.TaskCommand {
	return &historyv1.TaskCommand{Task: task, Reason: "for a test", By: "me"}
}

// mustUpdate sends an update and fails the test if it is refused. It sends the update again if a node is slow.
func mustUpdate(h *workertest.Handle, update, task string) {
	h.T.Helper()
	var err error
	workertest.Eventually(h.T, fmt.Sprintf("an answer to %s %s", update, task), func() bool {
		err = sendUpdate(h, update, command(task))
		// Only a restart must not be repeated.
		return err == nil || update == names.RestartTaskUpdate || !strings.Contains(err.Error(), "did not answer in time")
	})
	if err != nil {
		h.T.Fatalf("%s %s: %v", update, task, err)
	}
}

// mustSteerRun sends an update for the whole run and fails the test if it is refused.
func mustSteerRun(h *workertest.Handle, update string) {
	h.T.Helper()
	if err := sendUpdate(h, update, &historyv1.RunCommand{By: "me"}); err != nil {
		h.T.Fatalf("%s: %v", update, err)
	}
}

// tightLimits are limits that a few updates, signals or events of tasks reach, or a few kilobytes in one workflow task, and that a
// history does not.
var tightLimits = limits.Run{
	HardUpdates: 6, LastUpdates: 12, HardSignals: 6, LastSignals: 12, DetachWait: 10 * time.Millisecond, DetachedLease: workertest.Limit,
	UnstoredEvents: 20, ScheduleBytes: 128 << 10,
}

// TestUpdatesAndSignalsNeverExhaustAnExecution checks that a run continues as new before Temporal refuses its updates or signals:
// while an attempt is in flight, and while the run waits for its approval.
func TestUpdatesAndSignalsNeverExhaustAnExecution(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, tightLimits)
	hold := func(h *workertest.Handle) {
		for _, update := range []string{names.HoldUpdate, names.ReleaseUpdate} {
			err := sendUpdate(h, update, &historyv1.TaskCommand{Task: "after"})
			// The server repeats an update whose answer got lost when the run continued as new.
			if app, ok := errors.AsType[*temporal.ApplicationError](err); err != nil && (!ok || app.Type() != names.TaskStateError) {
				h.T.Fatal(err)
			}
		}
	}
	for name, send := range map[string]func(*workertest.Handle){
		"updates": hold,
		"signals": func(h *workertest.Handle) {
			if err := h.Conn.SignalWorkflow(h.T.Context(), h.ID, "", names.ApproveUpdate, &historyv1.TaskCommand{Task: "slow"}); err != nil {
				h.T.Fatal(err)
			}
		},
		"unknown signals": func(h *workertest.Handle) {
			if err := h.Conn.SignalWorkflow(h.T.Context(), h.ID, "", "no-such-signal", nil); err != nil {
				h.T.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := y.Nodes(t, workertest.Script{"slow": {{Block: true}}})
			c.Start("n")
			h := c.Submit(c.Input(`{name: steered, tasks: {slow: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [slow]}}}`))
			c.AwaitRunning("slow")
			workertest.Eventually(t, "the run continues as new twice", func() bool {
				send(h)
				return len(executionsOf(h)) > 2
			})
			hold(h)
			c.Fake.Release("slow")
			workertest.CheckRun(t, h.Wait(), v1.RunCompleted, map[string]string{"slow": v1.TaskCompleted, "after": v1.TaskCompleted})
			if n := c.Calls()["slow"]; n != 1 {
				t.Errorf("the attempt ran %d times", n)
			}
		})
	}
	t.Run("before the approval", func(t *testing.T) {
		t.Parallel()
		c := y.Nodes(t, nil)
		c.Start("n")
		in := c.Input(`{name: awaited, concurrency: {maxRuns: 1}, tasks: {slow: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [slow]}}}`)
		in.Definition.Name = names.NewRunID("awaited")
		in.NeedsApproval = true
		h := c.Submit(in)
		workertest.Eventually(t, "the run continues as new twice", func() bool {
			hold(h)
			return len(executionsOf(h)) > 2
		})
		if run := h.Status(&historyv1.StatusRequest{}).GetRun(); run.GetState() != v1.RunPendingApproval || c.Calls()["slow"] > 0 {
			t.Errorf("the run is %v", run)
		}
		if err := sendUpdate(h, names.ApproveRunUpdate, &historyv1.RunCommand{By: "bob"}); err != nil {
			t.Fatal(err)
		}
		workertest.CheckRun(t, h.Wait(), v1.RunCompleted, map[string]string{"slow": v1.TaskCompleted, "after": v1.TaskCompleted})
	})
}
