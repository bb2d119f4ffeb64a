package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// final returns the whole status of a run that has closed. It is the result of
// the workflow or the detail of its failure, or in the store when it is large.
// A run that was ended from outside has left neither: then its workflow is asked
// for the last it knew, and failing that its history for what it was to do.
func (r *reader) final(ctx context.Context, desc *description) (*v1.StatusResponse, error) {
	info := desc.GetWorkflowExecutionInfo()
	id := info.GetExecution().GetWorkflowId()
	status, cause, err := r.result(ctx, desc)
	if err != nil {
		return nil, err
	}
	if !whole(status) {
		kept, err := r.kept(ctx, id, status)
		if err != nil {
			return nil, err
		}
		if kept == nil {
			kept, err = r.lastKnown(ctx, desc)
		}
		if err != nil {
			return nil, err
		}
		if status.GetRun() != nil {
			kept.Run.State, kept.Run.Reason, kept.Run.Error = status.Run.GetState(), status.Run.GetReason(), status.Run.GetError()
			kept.Run.CompletedAt = status.Run.GetCompletedAt()
		}
		status = kept
	}
	status = proto.CloneOf(status)
	run := status.Run
	// Temporal knows a rejected run as failed.
	if state := stateOf(info.GetStatus()); run.GetState() != state && (run.GetState() != v1.RunRejected || state != v1.RunFailed) {
		run.State, run.Reason, run.Error = state, reasonOf(info.GetStatus()), cause
		if run.Reason == "" && state == v1.RunFailed {
			run.Reason = v1.ReasonSystem
		}
	}
	if run.CompletedAt == nil {
		run.CompletedAt = info.GetCloseTime()
	}
	for _, task := range run.Tasks {
		cutOff(task, run)
	}
	return status, nil
}

// cutOff ends what had not ended of a task when its run was ended from outside.
func cutOff(task *v1.Task, run *v1.Run) {
	if !v1.IsTaskTerminal(task.GetState()) {
		task.State, task.Reason, task.CompletedAt = v1.TaskCancelled, run.GetReason(), run.GetCompletedAt()
	}
	for _, i := range task.GetInstances() {
		if !v1.IsTaskTerminal(i.GetState()) {
			i.State, i.Reason, i.CompletedAt = v1.TaskCancelled, run.GetReason(), run.GetCompletedAt()
		}
	}
	for state, n := range task.GetCounts() {
		if !v1.IsTaskTerminal(state) {
			task.Counts[v1.TaskCancelled] += n
			delete(task.Counts, state)
		}
	}
}

// whole says that a status holds all tasks of its run.
func whole(status *v1.StatusResponse) bool {
	return status.GetRun() != nil && int(status.GetTaskCount()) <= len(status.GetRun().GetTasks())
}

// result returns what the workflow left in Temporal, possibly nothing, and in
// words what ended it if it did not complete.
func (r *reader) result(ctx context.Context, desc *description) (*v1.StatusResponse, string, error) {
	info := desc.GetWorkflowExecutionInfo()
	exec := info.GetExecution()
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		cause, err := r.termination(ctx, exec.GetWorkflowId(), exec.GetRunId())
		return nil, cause, err
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return nil, "the workflow's time-out in Temporal is over", nil
	}
	status := &v1.StatusResponse{}
	err := r.client.GetWorkflow(ctx, exec.GetWorkflowId(), exec.GetRunId()).Get(ctx, status)
	if err == nil {
		return status, "", nil
	}
	if _, ended := errors.AsType[*temporal.WorkflowExecutionError](err); !ended {
		return nil, "", fmt.Errorf("read the result of run %s: %w", exec.GetWorkflowId(), err)
	}
	if canceled, ok := errors.AsType[*temporal.CanceledError](err); ok {
		if canceled.Details(status) != nil {
			status = nil
		}
		return status, "", nil
	}
	failed, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		return nil, err.Error(), nil
	}
	if failed.Details(status) != nil {
		status = nil
	}
	return status, failed.Message(), nil
}

// termination says who terminated a run, and why.
func (r *reader) termination(ctx context.Context, id, runID string) (string, error) {
	event, err := r.event(ctx, id, runID, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if err != nil {
		return "", err
	}
	by := event.GetWorkflowExecutionTerminatedEventAttributes()
	cause := "terminated"
	if by.GetIdentity() != "" {
		cause += " by " + by.GetIdentity()
	}
	if by.GetReason() != "" {
		cause += ": " + by.GetReason()
	}
	return cause, nil
}

// event returns the first event of a history that passes the filter.
func (r *reader) event(ctx context.Context, id, runID string, filter enumspb.HistoryEventFilterType) (*historypb.HistoryEvent, error) {
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

// input returns what an execution of a run was started with, and its chain.
func (r *reader) input(ctx context.Context, exec *commonpb.WorkflowExecution) (*v1.RunInput, error) {
	start, err := r.event(ctx, exec.GetWorkflowId(), exec.GetRunId(), enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if err != nil {
		return nil, err
	}
	var in v1.RunInput
	payloads := start.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &in); err != nil {
		return nil, fmt.Errorf("read the input of run %s: %w", exec.GetWorkflowId(), err)
	}
	if key := in.GetStored(); key != "" {
		carry := in.GetCarry()
		in.Reset()
		if err := r.store.GetMessage(ctx, key, &in); err != nil {
			return nil, fmt.Errorf("read the input of run %s: %w", exec.GetWorkflowId(), err)
		}
		in.Carry = carry
	}
	whole, err := definition.Unpack(&in)
	if err != nil {
		return nil, fmt.Errorf("read the input of run %s: %w", exec.GetWorkflowId(), err)
	}
	whole = proto.CloneOf(whole)
	whole.Chain = chainOf(exec.GetRunId(), start.GetWorkflowExecutionStartedEventAttributes(), in.GetChain())
	return whole, nil
}

// definedInput is input where it has the definition: FailedPrecondition of a run that was started with the name of a stored
// workflow, and has not read that.
func (r *reader) definedInput(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*v1.RunInput, error) {
	in, err := r.input(ctx, info.GetExecution())
	if err != nil || in.GetDefinition() != nil {
		return in, err
	}
	return nil, wrongState("run %s has no definition: it was started with the name of workflow %q, which it has not read", info.GetExecution().GetWorkflowId(), in.GetWorkflow())
}

// chainOf returns the chain of an execution, as its workflow knows it: that of a reset is its own.
func chainOf(execution string, start *historypb.WorkflowExecutionStartedEventAttributes, given string) string {
	if original := start.GetOriginalExecutionRunId(); original != "" && original != execution {
		return execution
	}
	return cmp.Or(given, start.GetFirstExecutionRunId())
}

// kept returns the status that the run left in the store, nil when there is none.
func (r *reader) kept(ctx context.Context, id string, header *v1.StatusResponse) (*v1.StatusResponse, error) {
	if header.GetRun() == nil {
		return nil, nil
	}
	var kept v1.StatusResponse
	err := r.store.GetMessage(ctx, store.StatusKey(names.Home(id, header.GetChain()), header.GetRun().GetGeneration()), &kept)
	if errors.Is(err, store.ErrNotFound) {
		r.log.Warn("the status of a run is missing in the store", "run", id)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &kept, nil
}

// lastKnown returns the last that the workflow of a closed run knew: what was kept when
// it was ended by force, or what it answers. Where no worker answers, it is what the
// execution was to do.
func (r *reader) lastKnown(ctx context.Context, desc *description) (*v1.StatusResponse, error) {
	info := desc.GetWorkflowExecutionInfo()
	id := info.GetExecution().GetWorkflowId()
	planned, err := r.planned(ctx, info)
	if err != nil {
		return nil, err
	}
	var kept v1.StatusResponse
	err = r.store.GetMessage(ctx, store.StatusKey(names.Home(id, planned.GetChain()), planned.GetRun().GetGeneration()), &kept)
	if err == nil {
		return &kept, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	answers, err := r.ask(ctx, id, 0)
	if err == nil {
		return together(answers), nil
	}
	r.log.Debug("a closed run does not answer", "run", id, "error", err)
	return planned, nil
}

// planned returns what an execution of a run has been started with, as a status: the
// definition with nothing done, or what the execution before it had done.
func (r *reader) planned(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*v1.StatusResponse, error) {
	id := info.GetExecution().GetWorkflowId()
	in, err := r.input(ctx, info.GetExecution())
	if err != nil {
		return nil, err
	}
	known := visibility.Decode(info.GetSearchAttributes())
	run := &v1.Run{
		Id: id, Name: cmp.Or(known.Workflow, in.GetWorkflow()), State: v1.RunRunning, CreatedAt: submittedAt(info, known),
		Tasks: map[string]*v1.Task{}, Context: in.GetDefinition().GetContext(), Input: in.GetInput(),
		Generation: in.GetGeneration(), SubmittedBy: cmp.Or(known.Owner, in.GetBy()), Batch: in.GetBatch(),
	}
	if isOpen(info.GetStatus()) {
		run.State = listedState(info, known)
	}
	for task, def := range in.GetDefinition().GetTasks() {
		run.Tasks[task] = &v1.Task{State: v1.TaskPending, Type: def.GetType(), DependsOn: def.GetDependsOn()}
	}
	for task, carry := range in.GetCarry().GetTasks() {
		run.Tasks[task] = carry.GetTask()
	}
	return &v1.StatusResponse{Run: run, TaskCount: int32(len(run.Tasks)), Chain: in.GetChain()}, nil
}
