package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// queryTimeout bounds one query; a run whose worker is gone does not answer.
	queryTimeout = 5 * time.Second
	// patience is how long a call, or the log, waits for a run that does not answer.
	patience = 10 * time.Second
	// retryPause is the wait before a run that did not answer is asked again.
	retryPause = 200 * time.Millisecond
)

type description = workflowservice.DescribeWorkflowExecutionResponse

// reader reads what is known of runs. For a moment it remembers what they said.
type reader struct {
	client    client.Client
	namespace string
	store     *store.Store
	log       *slog.Logger
	memory    memory

	stuckParts stuckParts
}

// describe returns what Temporal knows of a run; a workflow that is no run is
// not found.
func (r *reader) describe(ctx context.Context, id string) (*description, error) {
	desc, err := r.client.DescribeWorkflowExecution(ctx, id, "")
	if err == nil && desc.GetWorkflowExecutionInfo().GetType().GetName() != names.RunWorkflow {
		return nil, noRun(id)
	}
	if err != nil && lasting(err) {
		return nil, noRun(id)
	}
	return desc, err
}

// ask asks the workflow of a run for everything after a revision.
func (r *reader) ask(ctx context.Context, id string, since int64) ([]*v1.StatusResponse, error) {
	var answers []*v1.StatusResponse
	for {
		answer := &v1.StatusResponse{}
		if err := r.query(ctx, id, names.StatusQuery, &v1.StatusRequest{Since: since}, answer); err != nil {
			return nil, fmt.Errorf("ask run %s for its status: %w", id, err)
		}
		answers = append(answers, answer)
		if answer.GetRevision() < since {
			// Another execution under the same id counts anew.
			answers, since = nil, 0
			continue
		}
		if !answer.GetMore() {
			return answers, nil
		}
		since = answer.GetRevision()
	}
}

// read reads all of a run. A run that does not answer is asked again for a while. The view is shared: nobody changes it.
func (r *reader) read(ctx context.Context, id string) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		v, err := r.readOnce(ctx, id)
		if err == nil || lasting(err) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("run %s does not answer; is a control worker up?: %w", id, err)
		case <-time.After(retryPause):
		}
	}
}

// settled reads all of a run, and what Temporal knows of the execution that has been read.
func (r *reader) settled(ctx context.Context, id string) (*description, *view, error) {
	for {
		before, err := r.describe(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		v, err := r.read(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		after, err := r.describe(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if before.GetWorkflowExecutionInfo().GetExecution().GetRunId() == after.GetWorkflowExecutionInfo().GetExecution().GetRunId() {
			return after, v, nil
		}
	}
}

func (r *reader) readOnce(ctx context.Context, id string) (*view, error) {
	desc, err := r.describe(ctx, id)
	if err != nil {
		return nil, err
	}
	info := desc.GetWorkflowExecutionInfo()
	if !isOpen(info.GetStatus()) {
		said, err := r.ended(ctx, desc)
		if err != nil {
			return nil, err
		}
		return said.viewed(id, nil), nil
	}
	running, problem := runningAttempts(desc.GetPendingActivities()), r.problem(ctx, desc)
	so, err := r.soFar(ctx, info)
	if problem == "" {
		if err != nil {
			return nil, err
		}
		return so.viewed(id, running), nil
	}
	var status *v1.StatusResponse
	if err == nil {
		status = withProblem(so.status, problem)
	} else if status, err = r.stuck(ctx, info, problem); err != nil {
		return nil, err
	}
	return (&said{status: status}).viewed(id, running), nil
}

// ended returns the whole status of a run that has closed.
func (r *reader) ended(ctx context.Context, desc *description) (*said, error) {
	exec := desc.GetWorkflowExecutionInfo().GetExecution()
	if known := r.memory.get(exec.GetWorkflowId(), exec.GetRunId()); known != nil && known.events == closedEvents {
		return known, nil
	}
	status, err := r.final(ctx, desc)
	if err != nil {
		return nil, err
	}
	return r.memory.put(exec.GetWorkflowId(), exec.GetRunId(), closedEvents, status), nil
}

// closedEvents stands for all events of an execution that has closed.
const closedEvents = -1

// soFar returns the whole status of an open run. What the workflow says follows from its history, so it is asked only
// for what has come since it was asked last.
func (r *reader) soFar(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*said, error) {
	id, execution := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	known := r.memory.get(id, execution)
	if known != nil && known.events == info.GetHistoryLength() {
		return known, nil
	}
	var answers []*v1.StatusResponse
	if known != nil {
		newer, err := r.ask(ctx, id, known.status.GetRevision())
		if err != nil {
			return nil, err
		}
		if newer[0].GetRun().GetGeneration() == known.status.GetRun().GetGeneration() {
			answers = append([]*v1.StatusResponse{known.status}, newer...)
		}
	}
	if answers == nil {
		var err error
		if answers, err = r.ask(ctx, id, 0); err != nil {
			return nil, err
		}
	}
	return r.memory.put(id, execution, info.GetHistoryLength(), together(answers)), nil
}

// isOpen says that a run goes on, if need be in another execution.
func isOpen(status enumspb.WorkflowExecutionStatus) bool {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
		enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return true
	}
	return false
}

// stateOf is the state of a run whose workflow has a status.
func stateOf(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return v1.RunPaused
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return v1.RunCompleted
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return v1.RunCancelled
	}
	if isOpen(status) {
		return v1.RunRunning
	}
	return v1.RunFailed
}

// reasonOf is why a run ended that did not end by itself.
func reasonOf(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return v1.ReasonTerminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return v1.ReasonTimeout
	}
	return ""
}
