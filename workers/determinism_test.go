package workers

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/election"
	"switchyard/workflows/environment"
	"switchyard/workflows/explain"
	"switchyard/workflows/names"
	"switchyard/workflows/run"
)

// replayHistory replays a history with the workflows of a control worker.
func (cfg ControlConfig) replayHistory(events []*historypb.HistoryEvent) error {
	// A busy machine may exceed the second after which a replay counts as a deadlock.
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	if err != nil {
		return err
	}
	r.RegisterWorkflowWithOptions(run.Runner{Limits: cfg.limits}.Run, workflow.RegisterOptions{Name: names.RunWorkflow})
	r.RegisterWorkflowWithOptions(run.Runner{Limits: cfg.limits}.Run, workflow.RegisterOptions{Name: names.FanOutWorkflow})
	r.RegisterWorkflowWithOptions(cfg.registrar.Node, workflow.RegisterOptions{Name: names.NodeWorkflow})
	r.RegisterWorkflowWithOptions(cfg.locker.Lock, workflow.RegisterOptions{Name: names.LockWorkflow})
	r.RegisterWorkflowWithOptions(election.Leader, workflow.RegisterOptions{Name: names.LeaderWorkflow})
	r.RegisterWorkflowWithOptions(environment.Environment, workflow.RegisterOptions{Name: names.EnvironmentWorkflow})
	r.RegisterWorkflowWithOptions(explain.Explain, workflow.RegisterOptions{Name: names.ExplainWorkflow})
	// The IDs of children begin with the ID of the run.
	id := events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	return r.ReplayWorkflowHistoryWithOptions(nil, &historypb.History{Events: events},
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}})
}

// replayAll replays every history on the server of a cluster, so that each test also checks determinism: a run whose
// history is replayed, after a takeover or for a query, must take the same decisions.
func (y *cluster) replayAll(ctx context.Context) error {
	var wrong []error
	req := &workflowservice.ListWorkflowExecutionsRequest{}
	for {
		res, err := y.conn.ListWorkflow(ctx, req)
		if err != nil {
			return fmt.Errorf("list the workflows: %w", err)
		}
		for _, e := range res.GetExecutions() {
			if !y.replayable(e.GetType().GetName()) {
				continue
			}
			id, execution := e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()
			events, begun, err := y.events(ctx, id, execution)
			if err == nil && begun {
				err = y.config.replayHistory(events)
			}
			if err != nil {
				wrong = append(wrong, fmt.Errorf("replay %s, execution %s of %s: %w", e.GetType().GetName(), execution, id, err))
			}
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return errors.Join(wrong...)
		}
	}
}

// replayable reports whether a workflow belongs to Switchyard and not to a test.
func (y *cluster) replayable(name string) bool {
	switch name {
	case names.RunWorkflow, names.FanOutWorkflow, names.NodeWorkflow, names.LockWorkflow, names.LeaderWorkflow, names.ExplainWorkflow:
		return true
	}
	return false
}

// events returns the history of an execution, and reports whether its first workflow task has completed.
func (y *cluster) events(ctx context.Context, id, execution string) (events []*historypb.HistoryEvent, begun bool, err error) {
	it := y.conn.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, false, err
		}
		begun = begun || e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
		events = append(events, e)
	}
	return events, begun, nil
}
