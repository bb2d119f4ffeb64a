package gateway

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"golang.org/x/sync/errgroup"

	"switchyard/workflows/names"
)

// newestRuns is newest without the executions that a later generation of their
// run has replaced, which a query by state finds too.
func (g *Gateway) newestRuns(ctx context.Context, query string, after *position, n int, match func(id string) bool) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var runs []*workflowpb.WorkflowExecutionInfo
	for {
		found, err := g.newest(ctx, query, after, n, match)
		if err != nil {
			return nil, err
		}
		current, err := g.current(ctx, found)
		if err != nil {
			return nil, err
		}
		runs = append(runs, current...)
		if len(found) < n || len(runs) >= n {
			return runs[:min(n, len(runs))], nil
		}
		last := positionOf(found[len(found)-1])
		after = &last
	}
}

// current are those executions, in their order, that are the newest of their run.
func (g *Gateway) current(ctx context.Context, found []*workflowpb.WorkflowExecutionInfo) ([]*workflowpb.WorkflowExecutionInfo, error) {
	replaced := make([]bool, len(found))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, info := range found {
		if !mayBeReplaced(info) {
			continue
		}
		group.Go(func() error {
			exec := info.GetExecution()
			desc, err := g.client.DescribeWorkflowExecution(groupCtx, exec.GetWorkflowId(), "")
			if err != nil {
				if lasting(err) {
					return nil // it is gone, but for visibility
				}
				return err
			}
			replaced[i] = desc.GetWorkflowExecutionInfo().GetExecution().GetRunId() != exec.GetRunId()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var runs []*workflowpb.WorkflowExecutionInfo
	for i, info := range found {
		if !replaced[i] {
			runs = append(runs, info)
		}
	}
	return runs, nil
}

// mayBeReplaced says that a run may have been started again after an execution:
// it did not complete, or has dead letters.
func mayBeReplaced(info *workflowpb.WorkflowExecutionInfo) bool {
	if isOpen(info.GetStatus()) {
		return false
	}
	_, letters := info.GetSearchAttributes().GetIndexedFields()[names.DeadLettersAttribute]
	return letters || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
}
