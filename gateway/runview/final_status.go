package runview

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// FinalStatus returns the whole status of a closed run. It is in the result of the workflow or in the details of its
// failure, or in the store if it is large. A run that was closed from outside has left neither: FinalStatus then
// queries its workflow for the last status, or derives one from the history if the workflow does not answer.
func (r *Reader) FinalStatus(ctx context.Context, desc *Description) (*historyv1.StatusResponse, error) {
	info := desc.GetWorkflowExecutionInfo()
	id := info.GetExecution().GetWorkflowId()
	status, cause, err := r.result(ctx, desc)
	if err != nil {
		return nil, err
	}
	if !isWhole(status) {
		kept, err := r.storedStatus(ctx, id, status)
		if err != nil {
			return nil, err
		}
		if kept == nil {
			kept, err = r.LastStatus(ctx, desc)
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
	setOrigin(run, info)
	// Temporal reports a rejected run as failed.
	if state := StateOf(info.GetStatus()); run.GetState() != state && (run.GetState() != v1.RunRejected || state != v1.RunFailed) {
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

// cutOff marks a task and its instances as cancelled, if they had not ended when their run was closed from outside.
func cutOff(task *v1.Task, run *v1.Run) {
	if !v1.HasTaskEnded(task) {
		task.State, task.Reason, task.CompletedAt, task.Notice = v1.TaskCancelled, run.GetReason(), run.GetCompletedAt(), ""
		if task.GetFinally() {
			task.Error = "it did not end, because the run was closed from outside; `switchyard runs retry " + run.GetId() + " --finally-only` runs finally"
		}
	}
	for _, i := range task.GetInstances() {
		if !v1.HasTaskEnded(i) {
			if _, counted := task.GetCounts()[v1.TaskLost]; counted && i.GetState() == v1.TaskLost { // counted like an ended one
				task.Counts[v1.TaskCancelled]++
				if task.Counts[v1.TaskLost]--; task.Counts[v1.TaskLost] == 0 {
					delete(task.Counts, v1.TaskLost)
				}
			}
			i.State, i.Reason, i.CompletedAt, i.Notice = v1.TaskCancelled, run.GetReason(), run.GetCompletedAt(), ""
		}
	}
	for state, n := range task.GetCounts() {
		if !v1.IsTaskTerminal(state) {
			task.Counts[v1.TaskCancelled] += n
			delete(task.Counts, state)
		}
	}
}

// isWhole reports whether a status has all tasks of its run.
func isWhole(status *historyv1.StatusResponse) bool {
	return status.GetRun() != nil && int(status.GetTaskCount()) <= len(status.GetRun().GetTasks())
}

// result returns the status that the workflow left in Temporal, or nil, and the cause of its end if it did not
// complete.
func (r *Reader) result(ctx context.Context, desc *Description) (*historyv1.StatusResponse, string, error) {
	info := desc.GetWorkflowExecutionInfo()
	exec := info.GetExecution()
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		cause, err := r.termination(ctx, exec.GetWorkflowId(), exec.GetRunId())
		return nil, cause, err
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return nil, "the workflow's time-out in Temporal is over", nil
	}
	status := &historyv1.StatusResponse{}
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

// termination returns a text that tells who terminated a run, and why.
func (r *Reader) termination(ctx context.Context, id, runID string) (string, error) {
	event, err := r.FirstEvent(ctx, id, runID, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
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

// storedStatus returns the status of the run in the store, or nil if there is none.
func (r *Reader) storedStatus(ctx context.Context, id string, header *historyv1.StatusResponse) (*historyv1.StatusResponse, error) {
	if header.GetRun() == nil {
		return nil, nil
	}
	var kept historyv1.StatusResponse
	err := r.store.GetMessage(ctx, storekey.Status(names.Home(id, header.GetChain()), header.GetRun().GetGeneration()), &kept)
	if errors.Is(err, store.ErrNotFound) {
		r.log.Warn("the status of a run is missing from the store", "run", id)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &kept, nil
}

// LastStatus returns the last status of a closed run: the one that a forced end stored, or the reply of the workflow
// to a query. If no worker answers, it is the status with which the execution started.
func (r *Reader) LastStatus(ctx context.Context, desc *Description) (*historyv1.StatusResponse, error) {
	info := desc.GetWorkflowExecutionInfo()
	id := info.GetExecution().GetWorkflowId()
	planned, err := r.plannedStatus(ctx, info)
	if err != nil {
		return nil, err
	}
	var kept historyv1.StatusResponse
	err = r.store.GetMessage(ctx, storekey.Status(names.Home(id, planned.GetChain()), planned.GetRun().GetGeneration()), &kept)
	if err == nil {
		return &kept, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	answers, err := r.queryStatusSince(ctx, info, &historyv1.StatusRequest{Checkpoints: true})
	if err == nil {
		return mergeAnswers(answers), nil
	}
	r.log.Debug("a closed run does not answer", "run", id, "error", err)
	return planned, nil
}
