package runindex

import (
	"context"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"golang.org/x/sync/errgroup"

	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

// NewestRuns works like NewestExecutions, but omits executions that a later generation of their run has replaced. Queries by state
// select those too.
func (x *Index) NewestRuns(ctx context.Context, query string, after *paging.Position, n int, match func(*workflowpb.WorkflowExecutionInfo) bool) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var runs []*workflowpb.WorkflowExecutionInfo
	for {
		found, err := x.NewestExecutions(ctx, query, after, n, match)
		if err != nil {
			return nil, err
		}
		current, err := x.newestOfRuns(ctx, found)
		if err != nil {
			return nil, err
		}
		runs = append(runs, current...)
		if len(found) < n || len(runs) >= n {
			return runs[:min(n, len(runs))], nil
		}
		last := paging.PositionOf(found[len(found)-1])
		after = &last
	}
}

// describesAtOnce is the number of executions that are described concurrently.
const describesAtOnce = 8

// newestOfRuns returns the executions that are the newest of their runs, in the given order.
func (x *Index) newestOfRuns(ctx context.Context, found []*workflowpb.WorkflowExecutionInfo) ([]*workflowpb.WorkflowExecutionInfo, error) {
	replaced := make([]bool, len(found))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(describesAtOnce)
	for i, info := range found {
		if !mayBeReplaced(info) {
			continue
		}
		group.Go(func() error {
			exec := info.GetExecution()
			desc, err := x.client.DescribeWorkflowExecution(groupCtx, exec.GetWorkflowId(), "")
			if err != nil {
				if rpcerror.IsPermanent(err) {
					return nil // the execution exists only in visibility
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
	newest, err := x.newestOf(ctx, found)
	if err != nil {
		return nil, err
	}
	var runs []*workflowpb.WorkflowExecutionInfo
	for i, info := range found {
		later, known := newest[info.GetExecution().GetWorkflowId()]
		if !replaced[i] && (!known || !later.Before(paging.PositionOf(info))) {
			runs = append(runs, info)
		}
	}
	return runs, nil
}

// idsAtOnce is the number of runs that one query names.
const idsAtOnce = 100

// newestOf returns the positions of the newest executions of completed runs according to visibility. There are many such runs and
// few are retried, so they are not described individually.
func (x *Index) newestOf(ctx context.Context, found []*workflowpb.WorkflowExecutionInfo) (map[string]paging.Position, error) {
	var ids []string
	for _, info := range found {
		id := info.GetExecution().GetWorkflowId()
		if !runview.IsOpen(info.GetStatus()) && !mayBeReplaced(info) && runIDText().MatchString(id) {
			ids = append(ids, id)
		}
	}
	newest := map[string]paging.Position{}
	for some := range slices.Chunk(ids, idsAtOnce) {
		err := x.eachOf(ctx, RunsQuery, some, func(info *workflowpb.WorkflowExecutionInfo) {
			id, at := info.GetExecution().GetWorkflowId(), paging.PositionOf(info)
			if best, known := newest[id]; !known || at.Before(best) {
				newest[id] = at
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return newest, nil
}

// mayBeReplaced reports whether a run is likely to have been retried after an execution: it did not complete, or it has dead
// letters.
func mayBeReplaced(info *workflowpb.WorkflowExecutionInfo) bool {
	if runview.IsOpen(info.GetStatus()) {
		return false
	}
	_, letters := info.GetSearchAttributes().GetIndexedFields()[names.DeadLettersAttribute]
	return letters || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
}
