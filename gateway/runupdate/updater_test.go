package runupdate

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

// scriptedClient answers updates with faults, then with success, and describes a run.
type scriptedClient struct {
	client.Client
	faults []error
	sent   int
	status enumspb.WorkflowExecutionStatus
}

func (c *scriptedClient) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	c.sent++
	if c.sent <= len(c.faults) {
		return nil, c.faults[c.sent-1]
	}
	return doneHandle{}, nil
}

func (c *scriptedClient) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	workflowType := names.RunWorkflow
	if _, ok := names.ParseFanOutID(id); ok {
		workflowType = names.FanOutWorkflow
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Type: &commonpb.WorkflowType{Name: workflowType}, Status: c.status,
	}}, nil
}

// doneHandle is an update that the run has carried out.
type doneHandle struct{ client.WorkflowUpdateHandle }

func (doneHandle) Get(context.Context, any) error { return nil }

func TestUpdateThatMeetsTheEndOfARunIsRepeatedOrRefused(t *testing.T) {
	t.Parallel()
	const running, completed = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	notReady, closed := serviceerror.NewWorkflowNotReady("Unable to perform workflow execution update due to unexpected workflow task failure."), serviceerror.NewNotFound("workflow execution already completed")
	unfinished := temporal.NewApplicationError("Workflow Update failed because the Workflow completed before the Update completed.", acceptedByEndedRun)
	forever := make([]error, 10_000)
	for i := range forever {
		forever[i] = notReady
	}
	for name, test := range map[string]struct {
		faults []error
		status enumspb.WorkflowExecutionStatus
		code   connect.Code // 0 means success
		says   string
	}{
		"accepted at once":                    {nil, running, 0, ""},
		"while the run tries to end":          {[]error{notReady, notReady}, running, 0, ""},
		"too many at once":                    {[]error{&serviceerror.ResourceExhausted{}}, running, 0, ""},
		"continuing as new":                   {[]error{temporal.NewApplicationError("", names.RunContinuingError)}, running, 0, ""},
		"overtaken by continue-as-new":        {[]error{closed, unfinished}, running, 0, ""},
		"after the end":                       {[]error{closed}, completed, connect.CodeAborted, "run r has already completed"},
		"begun before the end":                {[]error{notReady, unfinished}, completed, connect.CodeAborted, "run r has already completed"},
		"a run whose workflow task fails":     {forever, running, connect.CodeUnavailable, "try again"},
		"an outage":                           {[]error{serviceerror.NewUnavailable("no route")}, running, connect.CodeUnavailable, "no route"},
		"a state that does not allow it":      {[]error{temporal.NewApplicationError("task a has ended", "")}, running, connect.CodeAborted, "run r: task a has ended"},
		"a person who may not decide":         {[]error{temporal.NewApplicationError("ann has the role user", names.NotAllowedError)}, running, connect.CodePermissionDenied, "run r: ann has the role user"},
		"an unknown state of another program": {[]error{errors.New("odd")}, running, connect.CodeInternal, "odd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &scriptedClient{faults: test.faults, status: test.status}
				err := New(c, runview.NewReader(c, "default", nil, slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler)).Send(t.Context(), "r", names.PauseUpdate, nil)
				if test.code == 0 {
					if err != nil || c.sent != len(test.faults)+1 {
						t.Errorf("sent %d times: %v", c.sent, err)
					}
					return
				}
				if err == nil || rpcerror.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v (%v), want %v and %q", err, rpcerror.CodeOf(err), test.code, test.says)
				}
			})
		})
	}
}

func TestRefusalOfAChildNamesItsRun(t *testing.T) {
	t.Parallel()
	child := names.FanOut{Run: "r", Chain: "c", Task: "each", From: 10}.ID()
	for want, test := range map[string]struct {
		fault  error
		status enumspb.WorkflowExecutionStatus
	}{
		"run r: task each[12] has ended":                   {temporal.NewApplicationError("task each[12] has ended", ""), enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
		"run r: the instances from each[10] on have ended": {serviceerror.NewNotFound("workflow execution already completed"), enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED},
	} {
		c := &scriptedClient{faults: []error{test.fault}, status: test.status}
		err := New(c, runview.NewReader(c, "default", nil, slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler)).Send(t.Context(), child, names.CancelTaskUpdate, nil)
		if err == nil || err.Error() != want && !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
