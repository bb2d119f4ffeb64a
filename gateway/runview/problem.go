package runview

import (
	"context"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

const (
	// problemAttempts is the attempt of a workflow task from which a run counts as having a problem. A worker
	// reports only the first failure; each later one is a time-out.
	problemAttempts = 3
	// problemWait is how long a workflow task may wait for a control process.
	problemWait = 15 * time.Second
	// problemEvents is the number of events that are searched for the failure of a workflow task.
	problemEvents = 50
)

// problem returns a text that explains why an open run, or a part of it, makes no progress, or "" if there is
// no problem.
func (r *Reader) problem(ctx context.Context, desc *Description) string {
	if problem := r.ownProblem(ctx, desc); problem != "" || !IsOpen(desc.GetWorkflowExecutionInfo().GetStatus()) {
		return problem
	}
	return r.partProblem(ctx, desc.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId())
}

// ownProblem returns why the workflow of an open run or part makes no progress, or "" if there is no problem.
func (r *Reader) ownProblem(ctx context.Context, desc *Description) string {
	info, task := desc.GetWorkflowExecutionInfo(), desc.GetPendingWorkflowTask()
	if !IsOpen(info.GetStatus()) {
		return ""
	}
	if task.GetAttempt() < problemAttempts {
		waits := time.Since(task.GetScheduledTime().AsTime())
		if task.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && waits > problemWait {
			return fmt.Sprintf("no control process has advanced the run for %s; start a gateway, or check the log of the leader", waits.Round(time.Second))
		}
		return reportedProblem(info)
	}
	return fmt.Sprintf("its workflow task has failed %d times in a row: %s", task.GetAttempt()-1, r.taskFailure(ctx, info))
}

// taskFailure returns the last failure of an execution's workflow task, according to its history.
func (r *Reader) taskFailure(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) string {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	res, err := r.client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: r.namespace, Execution: info.GetExecution(), MaximumPageSize: problemEvents,
	})
	if err != nil {
		r.log.Debug("the history of a run with a problem cannot be read", "run", info.GetExecution().GetWorkflowId(), "error", err)
		return "its history cannot be read"
	}
	for _, event := range res.GetHistory().GetEvents() {
		if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil {
			message, _, _ := strings.Cut(failed.GetFailure().GetMessage(), "\n")
			return fmt.Sprintf("%s (%s)", message, failed.GetCause())
		}
		if event.GetWorkflowTaskTimedOutEventAttributes() != nil {
			return "the workflow task timed out"
		}
	}
	return "the log of the control process has the reason"
}

// reportedProblem returns the problem of a run according to visibility, or "" if there is none.
func reportedProblem(info *workflowpb.WorkflowExecutionInfo) string {
	if !IsOpen(info.GetStatus()) || info.GetSearchAttributes().GetIndexedFields()[names.ReportedProblemsAttribute] == nil {
		return ""
	}
	return "its workflow task keeps failing; `runs get` shows the error"
}

// stuckStatus returns the last known status of an open run that does not answer because of a problem.
func (r *Reader) stuckStatus(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, problem string) (*historyv1.StatusResponse, error) {
	exec := info.GetExecution()
	if known := r.statuses.get(exec.GetWorkflowId(), exec.GetRunId()); known != nil {
		return withProblem(known.Status, problem), nil
	}
	planned, err := r.plannedStatus(ctx, info)
	if err != nil {
		return nil, err
	}
	return withProblem(planned, problem), nil
}

// withProblem returns a status with the problem of its run replaced. It shares everything else.
func withProblem(status *historyv1.StatusResponse, problem string) *historyv1.StatusResponse {
	run := headerOf(status.GetRun())
	run.Context, run.Input, run.Tasks, run.Problem = status.GetRun().GetContext(), status.GetRun().GetInput(), status.GetRun().GetTasks(), problem
	return &historyv1.StatusResponse{
		Run: run, Revision: status.GetRevision(), TaskCount: status.GetTaskCount(), Claims: status.GetClaims(),
		Records: status.GetRecords(), Partitions: status.GetPartitions(), Chain: status.GetChain(), Items: status.GetItems(),
		EventSlices: status.GetEventSlices(), NextEvent: status.GetNextEvent(), Checkpoints: status.GetCheckpoints(),
		FinalReason: status.GetFinalReason(),
	}
}
