package runindex

import (
	"context"
	"slices"
	"switchyard/gateway/paging"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// MaxPage is the maximum number of executions in one response of Temporal.
const MaxPage = 1000

// ListWindows are the time windows that are searched one after the other until they hold enough runs. After the last one,
// everything is searched. Temporal lists by close time, so the newest run may be anywhere in its list.
var ListWindows = []time.Duration{time.Minute, 15 * time.Minute, 4 * time.Hour, 48 * time.Hour, 30 * 24 * time.Hour}

// NewestExecutions returns the n newest executions after a position that match and that the caller may see, newest first
// and one per run.
func (x *Index) NewestExecutions(ctx context.Context, query string, after *paging.Position, n int, match func(*workflowpb.WorkflowExecutionInfo) bool) ([]*workflowpb.WorkflowExecutionInfo, error) {
	scope := scopeOf(ctx)
	query, any := scope.narrow(query)
	if !any {
		return nil, nil
	}
	wanted := match
	match = func(info *workflowpb.WorkflowExecutionInfo) bool { return scope.reaches(info) && wanted(info) }
	from := x.now()
	if after != nil {
		from = after.Start
		query += " AND StartTime <= '" + from.UTC().Format(time.RFC3339Nano) + "'"
	}
	for _, window := range ListWindows {
		q := query + " AND StartTime > '" + from.Add(-window).UTC().Format(time.RFC3339Nano) + "'"
		found, err := x.search(ctx, q, after, n, match)
		if err != nil || len(found) == n {
			return found, err
		}
	}
	return x.search(ctx, query, after, n, match)
}

// search reads everything that a query selects and keeps the n newest. It holds at most a few times n executions.
func (x *Index) search(ctx context.Context, query string, after *paging.Position, n int, match func(*workflowpb.WorkflowExecutionInfo) bool) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var found []*workflowpb.WorkflowExecutionInfo
	req := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: MaxPage}
	for {
		res, err := x.client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, info := range res.GetExecutions() {
			if !match(info) || after != nil && !after.Before(paging.PositionOf(info)) {
				continue
			}
			found = append(found, info)
		}
		found = keepNewest(found, n)
		if len(res.GetNextPageToken()) == 0 {
			return found, nil
		}
		req.NextPageToken = res.GetNextPageToken()
	}
}

// keepNewest sorts executions, newest first, drops all but the newest of each run, and truncates the list to n.
func keepNewest(found []*workflowpb.WorkflowExecutionInfo, n int) []*workflowpb.WorkflowExecutionInfo {
	slices.SortFunc(found, func(a, b *workflowpb.WorkflowExecutionInfo) int {
		if paging.PositionOf(a).Before(paging.PositionOf(b)) {
			return -1
		}
		return 1
	})
	seen := map[string]bool{}
	found = slices.DeleteFunc(found, func(info *workflowpb.WorkflowExecutionInfo) bool {
		id := info.GetExecution().GetWorkflowId()
		defer func() { seen[id] = true }()
		return seen[id]
	})
	return found[:min(n, len(found))]
}

// AnyExecution matches every execution.
func AnyExecution(*workflowpb.WorkflowExecutionInfo) bool { return true }
