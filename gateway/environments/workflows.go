package environments

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/names"
)

const (
	// taskTimeout is how long a workflow task may stay with a dead worker before another worker gets it.
	taskTimeout = 6 * time.Second
	// failedFor is how long a failed creation stays visible.
	failedFor = 24 * time.Hour
	// endPatience bounds how long to wait for a cancelled creation to end. Its node may be offline.
	endPatience = 10 * time.Second
	// forgetTimeout bounds the execution that Forget starts.
	forgetTimeout = time.Minute
	// describedAtOnce bounds how many workflows are described concurrently.
	describedAtOnce = 8
)

// Workflows implements Creations in a Temporal namespace.
type Workflows struct {
	Client client.Client
	Now    func() time.Time
}

var _ Creations = Workflows{}

// Start starts the workflow that creates an environment.
func (w Workflows) Start(ctx context.Context, in *historyv1.CaptureRequest) error {
	e := in.GetEnvironment()
	_, err := w.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       names.EnvironmentWorkflowID(e.GetName()),
		TaskQueue:                names.ControlQueue,
		WorkflowTaskTimeout:      taskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		Memo:                     map[string]any{names.EnvironmentMemo: e},
		StaticSummary:            fmt.Sprintf("create environment %s on %s", e.GetName(), e.GetNode()),

		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, names.EnvironmentWorkflow, in)
	return err
}

// Get returns the environment that a workflow is creating or recently failed to create, or nil.
func (w Workflows) Get(ctx context.Context, name string) (*v1.Environment, error) {
	desc, err := w.Client.DescribeWorkflowExecution(ctx, names.EnvironmentWorkflowID(name), "")
	if rpcerror.Is[*serviceerror.NotFound](err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up the creation of environment %s: %w", name, err)
	}
	info := desc.GetWorkflowExecutionInfo()
	isOpen := runview.IsOpen(info.GetStatus())
	e := environmentIn(info.GetMemo())
	if e == nil || !isOpen && !w.isShown(info) {
		return nil, nil
	}
	e.Version++ // the version being created
	if isOpen {
		addProgress(e, desc.GetPendingActivities())
	} else {
		e.State, e.Error = v1.EnvironmentFailed, w.failure(ctx, info.GetExecution())
	}
	return e, nil
}

// isShown reports whether an ended workflow is shown as a failed creation.
func (w Workflows) isShown(info *workflowpb.WorkflowExecutionInfo) bool {
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return w.Now().Sub(info.GetCloseTime().AsTime()) < failedFor
	}
	return false
}

// environmentIn returns the environment in the memo of a workflow, or nil if the memo has none, as after Forget.
func environmentIn(memo *commonpb.Memo) *v1.Environment {
	e := &v1.Environment{}
	if payload := memo.GetFields()[names.EnvironmentMemo]; payload == nil || dataconverter.New().FromPayload(payload, e) != nil {
		return nil
	}
	return e
}

// addProgress adds the progress of the pending activities of a creation.
func addProgress(e *v1.Environment, pending []*workflowpb.PendingActivityInfo) {
	for _, p := range pending {
		switch kind, state := p.GetActivityType().GetName(), p.GetState(); {
		case kind == names.DiscardActivity:
			e.Error = "its archive is being discarded"
		case state == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED:
			e.Error = "it is being cancelled"
		case p.GetLastFailure() != nil:
			e.Error = fmt.Sprintf("attempt %d failed and will be retried: %s", p.GetAttempt()-1, p.GetLastFailure().GetMessage())
			if state == enumspb.PENDING_ACTIVITY_STATE_STARTED {
				e.Error = fmt.Sprintf("attempt %d is running; the previous one failed: %s", p.GetAttempt(), p.GetLastFailure().GetMessage())
			}
		case kind == names.CaptureActivity && state == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:
			e.Error = "waiting for node " + e.GetNode() + " begins"
		}
		progress := &historyv1.CaptureProgress{}
		if beats := p.GetHeartbeatDetails().GetPayloads(); len(beats) > 0 && dataconverter.New().FromPayload(beats[0], progress) == nil {
			e.Size = progress.GetSize()
		}
	}
}

// failure returns why a workflow failed, in one line.
func (w Workflows) failure(ctx context.Context, exec *commonpb.WorkflowExecution) string {
	err := w.Client.GetWorkflow(ctx, exec.GetWorkflowId(), exec.GetRunId()).Get(ctx, nil)
	if said, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return said.Message()
	}
	if rpcerror.Is[*temporal.TerminatedError](err) {
		return "its workflow was terminated in Temporal"
	}
	if err == nil {
		return "its workflow has completed since"
	}
	return err.Error()
}

// List returns the environments that Get would return, keyed by name, and a warning for each that cannot be read.
func (w Workflows) List(ctx context.Context) (found map[string]*v1.Environment, warnings []string, err error) {
	query := "WorkflowType = '" + names.EnvironmentWorkflow + "' AND (ExecutionStatus = 'Running' OR ExecutionStatus IN ('Failed', 'TimedOut', 'Terminated') AND CloseTime > " +
		runindex.QuoteTime(timestamppb.New(w.Now().Add(-failedFor))) + ")"
	found = map[string]*v1.Environment{}
	for req := (&workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: runindex.MaxPage}); ; {
		res, err := w.Client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, nil, fmt.Errorf("list the environments that are being created: %w", err)
		}
		for _, info := range res.GetExecutions() {
			if name, ok := names.ParseEnvironmentWorkflowID(info.GetExecution().GetWorkflowId()); ok {
				found[name] = nil
			}
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			break
		}
	}
	warnings = w.describe(ctx, found)
	return found, warnings, ctx.Err()
}

// describe fills in the environment of each name and removes the names without one. It returns a warning for each that cannot be
// read.
func (w Workflows) describe(ctx context.Context, all map[string]*v1.Environment) (warnings []string) {
	described := make([]*v1.Environment, 0, len(all))
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(describedAtOnce)
	for name := range all {
		group.Go(func() error {
			e, err := w.Get(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			if e != nil {
				described = append(described, e)
			}
			if err != nil {
				warnings = append(warnings, err.Error())
			}
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	clear(all)
	for _, e := range described {
		all[e.GetName()] = e
	}
	return warnings
}

// End cancels the workflow of a name and waits for its end. A workflow that still waits for its node counts as ended: it
// creates nothing any more.
func (w Workflows) End(ctx context.Context, name string) error {
	id := names.EnvironmentWorkflowID(name)
	if err := w.Client.CancelWorkflow(ctx, id, ""); err != nil {
		if rpcerror.Is[*serviceerror.NotFound](err) {
			return nil // it has already ended
		}
		return fmt.Errorf("end the creation of environment %s: %w", name, err)
	}
	waiting, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	_ = w.Client.GetWorkflow(waiting, id, "").Get(waiting, nil) // the outcome is read below
	desc, err := w.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return fmt.Errorf("look up the creation of environment %s: %w", name, err)
	}
	if !runview.IsOpen(desc.GetWorkflowExecutionInfo().GetStatus()) {
		return nil
	}
	for _, p := range desc.GetPendingActivities() {
		if kind := p.GetActivityType().GetName(); kind == names.CaptureActivity || kind == names.DiscardActivity {
			return nil // the workflow ends once its node has stopped, or once the archive is removed
		}
	}
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf("the creation of environment %s has not stopped; check that a control worker is running and try again", name))
}

// Forget replaces a failed creation by an execution that creates nothing. Deleting the failed execution in Temporal would
// take minutes.
func (w Workflows) Forget(ctx context.Context, name string) error {
	run, err := w.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       names.EnvironmentWorkflowID(name),
		TaskQueue:                names.ControlQueue,
		WorkflowTaskTimeout:      taskTimeout,
		WorkflowRunTimeout:       forgetTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:            "forget the creation of environment " + name,

		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, names.EnvironmentWorkflow, &historyv1.CaptureRequest{})
	if rpcerror.CodeOf(err) == connect.CodeAlreadyExists {
		return nil // a new creation is running
	}
	if err != nil {
		return fmt.Errorf("forget the creation of environment %s: %w", name, err)
	}
	waiting, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	_ = run.Get(waiting, nil) // so that a new creation can start immediately
	return nil
}
