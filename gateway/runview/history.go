package runview

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/definition"
	"switchyard/workflows/visibility"
)

// FirstEvent returns the first history event that passes the filter.
func (r *Reader) FirstEvent(ctx context.Context, id, runID string, filter enumspb.HistoryEventFilterType) (*historypb.HistoryEvent, error) {
	events := r.client.GetWorkflowHistory(ctx, id, runID, false, filter)
	if !events.HasNext() {
		return nil, fmt.Errorf("read the history of run %s: it is empty", id)
	}
	event, err := events.Next()
	if err != nil {
		return nil, fmt.Errorf("read the history of run %s: %w", id, err)
	}
	return event, nil
}

// Input returns the input of an execution of a run, with its chain.
func (r *Reader) Input(ctx context.Context, exec *commonpb.WorkflowExecution) (*historyv1.RunInput, error) {
	start, err := r.FirstEvent(ctx, exec.GetWorkflowId(), exec.GetRunId(), enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if err != nil {
		return nil, err
	}
	var in historyv1.RunInput
	payloads := start.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := dataconverter.New().FromPayloads(payloads, &in); err != nil {
		return nil, unreadableInput(exec, err)
	}
	if key := in.GetStored(); key != "" {
		runState := in.GetState()
		in.Reset()
		if err := r.store.GetMessage(ctx, key, &in); err != nil {
			return nil, fmt.Errorf("read the input of run %s: %w", exec.GetWorkflowId(), err)
		}
		in.State = runState
	}
	whole, err := definition.Unpack(&in)
	if err != nil {
		return nil, unreadableInput(exec, err)
	}
	whole = proto.CloneOf(whole)
	whole.Chain = chainOf(exec.GetRunId(), start.GetWorkflowExecutionStartedEventAttributes(), in.GetChain())
	return whole, nil
}

// errUnreadable reports a run that was not started by Switchyard.
var errUnreadable = errors.New("the workflow's input is not that of a run; delete the workflow in Temporal")

func unreadableInput(exec *commonpb.WorkflowExecution, err error) error {
	return fmt.Errorf("read the input of run %s: %w: %w", exec.GetWorkflowId(), errUnreadable, err)
}

// IsUnreadable reports whether an error stems from the permanent state of one run, so that another attempt
// would fail too.
func IsUnreadable(err error) bool {
	return errors.Is(err, errUnreadable) || errors.Is(err, store.ErrUnreadable)
}

// DefinedInput returns the input of a run with its definition. The error is Aborted if the run was started
// with the name of a stored workflow that it has not read.
func (r *Reader) DefinedInput(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*historyv1.RunInput, error) {
	in, err := r.Input(ctx, info.GetExecution())
	if err != nil || in.GetDefinition() != nil {
		return in, err
	}
	return nil, rpcerror.WrongState("run %s has no definition yet: it was started with the name of stored workflow %q and has not read it", info.GetExecution().GetWorkflowId(), in.GetWorkflow())
}

// chainOf returns the chain of an execution as its workflow sees it. A reset execution starts a chain of its
// own.
func chainOf(execution string, start *historypb.WorkflowExecutionStartedEventAttributes, given string) string {
	if original := start.GetOriginalExecutionRunId(); original != "" && original != execution {
		return execution
	}
	return cmp.Or(given, start.GetFirstExecutionRunId())
}

// plannedStatus returns the status with which an execution of a run started: the definition with nothing
// done, or the progress of the previous execution.
func (r *Reader) plannedStatus(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*historyv1.StatusResponse, error) {
	id := info.GetExecution().GetWorkflowId()
	in, err := r.Input(ctx, info.GetExecution())
	if err != nil {
		return nil, err
	}
	known := visibility.Decode(info.GetSearchAttributes())
	run := &v1.Run{
		Id: id, Name: cmp.Or(known.Workflow, in.GetWorkflow()), State: v1.RunRunning, CreatedAt: submittedAt(info, known),
		Tasks: map[string]*v1.Task{}, Context: in.GetDefinition().GetContext(), Input: in.GetInput(),
		Generation: in.GetGeneration(), SubmittedBy: cmp.Or(known.Owner, in.GetBy()), Batch: in.GetBatch(), Source: definition.Source(in),
		Trigger: known.Trigger, Parent: cmp.Or(known.Parent, in.GetParentRun()),
	}
	if IsOpen(info.GetStatus()) {
		run.State = listedState(info, known)
	}
	for task, def := range v1.AllTasks(in.GetDefinition()) {
		run.Tasks[task] = &v1.Task{State: v1.TaskPending, Type: def.GetType(), DependsOn: def.GetDependsOn()}
	}
	for task, runState := range in.GetState().GetTasks() {
		run.Tasks[task] = runState.GetTask()
	}
	return &historyv1.StatusResponse{Run: run, TaskCount: int32(len(run.Tasks)), Chain: in.GetChain()}, nil
}
