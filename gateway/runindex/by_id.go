package runindex

import (
	"context"
	"fmt"
	"slices"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"switchyard/gateway/paging"
)

// eachOf calls visit with each execution of the given runs that a query selects.
func (x *Index) eachOf(ctx context.Context, query string, ids []string, visit func(*workflowpb.WorkflowExecutionInfo)) error {
	req := &workflowservice.ListWorkflowExecutionsRequest{
		Query: query + " AND WorkflowId IN ('" + strings.Join(ids, "', '") + "')", PageSize: MaxPage,
	}
	for {
		res, err := x.client.ListWorkflow(ctx, req)
		if err != nil {
			return err
		}
		for _, info := range res.GetExecutions() {
			visit(info)
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

// NewestOf returns the newest executions of those given runs that the caller may see, by run. Runs that visibility does not
// list are omitted.
func (x *Index) NewestOf(ctx context.Context, runs []string) (map[string]*workflowpb.WorkflowExecutionInfo, error) {
	newest := map[string]*workflowpb.WorkflowExecutionInfo{}
	scope := scopeOf(ctx)
	query, any := scope.narrow(RunsQuery)
	if !any {
		return newest, nil
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(id string) bool { return !runIDText().MatchString(id) })
	for ids := range slices.Chunk(runs, idsAtOnce) {
		err := x.eachOf(ctx, query, ids, func(info *workflowpb.WorkflowExecutionInfo) {
			id := info.GetExecution().GetWorkflowId()
			if best := newest[id]; scope.reaches(info) && (best == nil || paging.PositionOf(info).Before(paging.PositionOf(best))) {
				newest[id] = info
			}
		})
		if err != nil {
			return nil, fmt.Errorf("look for runs: %w", err)
		}
	}
	return newest, nil
}
