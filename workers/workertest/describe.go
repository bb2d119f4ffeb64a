package workertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// describe returns what an open run reports, for the message of a failed test.
func (h *Handle) describe() string {
	value, err := h.Conn.QueryWorkflow(context.Background(), h.ID, "", names.StatusQuery, &historyv1.StatusRequest{})
	if err != nil {
		return err.Error() + h.Fault()
	}
	var s historyv1.StatusResponse
	if err := value.Get(&s); err != nil {
		return err.Error()
	}
	return Summary(s.GetRun())
}

// IsLate reports whether a call failed because the machine is too busy to answer in time.
func IsLate(err error) bool {
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return late || errors.Is(err, context.DeadlineExceeded)
}

// inTime calls the server, and again while the machine is too busy to answer in time.
func inTime(call func() error) error {
	for deadline := time.Now().Add(Limit); ; {
		if err := call(); !IsLate(err) || time.Now().After(deadline) {
			return err
		}
	}
}

// Describe returns Temporal's description of an execution of a workflow. "" means the newest. It retries on a slow machine.
func Describe(t *testing.T, conn client.Client, id, execution string) (d *workflowservice.DescribeWorkflowExecutionResponse) {
	t.Helper()
	Eventually(t, "Temporal describes "+id, func() bool {
		var err error
		d, err = conn.DescribeWorkflowExecution(t.Context(), id, execution)
		if err != nil && !IsLate(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return d
}

// overtaken reports whether a query failed because the cached run was evicted while its history grew: the SDK reports
// that as an illegal state (temporalio/sdk-go issue 755). A run that truly does not replay is found when the cluster
// stops.
func overtaken(err error) bool {
	_, failed := errors.AsType[*serviceerror.QueryFailed](err)
	return failed && strings.Contains(err.Error(), "invalid state transition")
}

// Fault returns why the newest failed workflow task failed.
func (h *Handle) Fault() string {
	text := ""
	for _, e := range h.History("") {
		if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil {
			text = fmt.Sprintf("\nworkflow task: %v %s", a.GetCause(), a.GetFailure().GetMessage())
		}
	}
	return text
}
