package run_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
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
	return sendUpdate(h, names.RetryUpdate, &v1.RetryTaskRequest{Task: task})
}

// command returns a user's command for a task.
func command(task string) *v1.TaskCommand {
	return &v1.TaskCommand{Task: task, Reason: "for a test", By: "me"}
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
