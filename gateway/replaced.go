package gateway

import (
	"context"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"switchyard/workflows/names"
)

// newestRuns is newest without the executions that a later generation of their
// run has replaced, which a query by state finds too.
func (g *Gateway) newestRuns(ctx context.Context, query string, after *position, n int, match func(*workflowpb.WorkflowExecutionInfo) bool) ([]*workflowpb.WorkflowExecutionInfo, error) {
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
	newest, err := g.newestOf(ctx, found)
	if err != nil {
		return nil, err
	}
	var runs []*workflowpb.WorkflowExecutionInfo
	for i, info := range found {
		later, known := newest[info.GetExecution().GetWorkflowId()]
		if !replaced[i] && (!known || !later.before(positionOf(info))) {
			runs = append(runs, info)
		}
	}
	return runs, nil
}

// idsAtOnce is how many runs one query names.
const idsAtOnce = 100

// newestOf is where the newest executions of those runs are that have completed, as far as visibility knows. There are
// many of them, and few are started again, so that they are not described one by one.
func (g *Gateway) newestOf(ctx context.Context, found []*workflowpb.WorkflowExecutionInfo) (map[string]position, error) {
	var ids []string
	for _, info := range found {
		id := info.GetExecution().GetWorkflowId()
		if !isOpen(info.GetStatus()) && !mayBeReplaced(info) && runIDText.MatchString(id) {
			ids = append(ids, "'"+id+"'")
		}
	}
	newest := map[string]position{}
	for some := range slices.Chunk(ids, idsAtOnce) {
		req := &workflowservice.ListWorkflowExecutionsRequest{
			Query: runsQuery + " AND WorkflowId IN (" + strings.Join(some, ", ") + ")", PageSize: visibilityPage,
		}
		for {
			res, err := g.client.ListWorkflow(ctx, req)
			if err != nil {
				return nil, err
			}
			for _, info := range res.GetExecutions() {
				id, at := info.GetExecution().GetWorkflowId(), positionOf(info)
				if best, known := newest[id]; !known || at.before(best) {
					newest[id] = at
				}
			}
			if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
				break
			}
		}
	}
	return newest, nil
}

// mayBeReplaced says that a run may well have been started again after an execution:
// it did not complete, or has dead letters.
func mayBeReplaced(info *workflowpb.WorkflowExecutionInfo) bool {
	if isOpen(info.GetStatus()) {
		return false
	}
	_, letters := info.GetSearchAttributes().GetIndexedFields()[names.DeadLettersAttribute]
	return letters || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
}
