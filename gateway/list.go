package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/visibility"
)

const (
	// defaultRunPage is how many runs a page holds when the request does not say.
	defaultRunPage = 100
	// visibilityPage is how many executions one call to Temporal returns at most.
	visibilityPage = 1000
)

// listWindows are the spans of time that are searched one after the other,
// until they hold enough runs; after the last comes everything. Temporal lists
// by the time of closing, so that the newest run may be anywhere in its list.
var listWindows = []time.Duration{time.Minute, 15 * time.Minute, 4 * time.Hour, 48 * time.Hour, 30 * 24 * time.Hour}

// ListRuns lists runs, newest first.
func (g *Gateway) ListRuns(ctx context.Context, req *connect.Request[v1.ListRunsRequest]) (*connect.Response[v1.ListRunsResponse], error) {
	pages, err := listOf(req.Msg)
	if err != nil {
		return nil, err
	}
	after, err := pages.decodeRun(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	filter, err := g.filterOf(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultRunPage
	}
	found, err := g.newestRuns(ctx, filter.query(), after, limit+1, filter.matches)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	res := &v1.ListRunsResponse{}
	for i, info := range found {
		if i == limit {
			res.NextPageToken = pages.encodeRun(positionOf(found[i-1]))
			break
		}
		res.Items = append(res.Items, runOf(info))
	}
	g.reader.listPartProblems(ctx, res.Items)
	return connect.NewResponse(res), nil
}

// newest returns the n newest executions after a position that match, newest
// first, one for each run.
func (g *Gateway) newest(ctx context.Context, query string, after *position, n int, match func(*workflowpb.WorkflowExecutionInfo) bool) ([]*workflowpb.WorkflowExecutionInfo, error) {
	from := g.config.Now()
	if after != nil {
		from = after.start
		query += " AND StartTime <= '" + from.UTC().Format(time.RFC3339Nano) + "'"
	}
	for _, window := range listWindows {
		q := query + " AND StartTime > '" + from.Add(-window).UTC().Format(time.RFC3339Nano) + "'"
		found, err := g.search(ctx, q, after, n, match)
		if err != nil || len(found) == n {
			return found, err
		}
	}
	return g.search(ctx, query, after, n, match)
}

// search looks at everything that a query finds and keeps the n newest. It
// holds at most a few times n executions.
func (g *Gateway) search(ctx context.Context, query string, after *position, n int, match func(*workflowpb.WorkflowExecutionInfo) bool) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var found []*workflowpb.WorkflowExecutionInfo
	req := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: visibilityPage}
	for {
		res, err := g.client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, info := range res.GetExecutions() {
			if !match(info) || after != nil && !after.before(positionOf(info)) {
				continue
			}
			found = append(found, info)
		}
		found = trim(found, n)
		if len(res.GetNextPageToken()) == 0 {
			return found, nil
		}
		req.NextPageToken = res.GetNextPageToken()
	}
}

// trim sorts executions, newest first, drops all but the newest of each run,
// and keeps n.
func trim(found []*workflowpb.WorkflowExecutionInfo, n int) []*workflowpb.WorkflowExecutionInfo {
	slices.SortFunc(found, func(a, b *workflowpb.WorkflowExecutionInfo) int {
		if positionOf(a).before(positionOf(b)) {
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

// isAny matches every execution that a query finds.
func isAny(*workflowpb.WorkflowExecutionInfo) bool { return true }

func positionOf(info *workflowpb.WorkflowExecutionInfo) position {
	return position{start: info.GetStartTime().AsTime(), runID: info.GetExecution().GetRunId()}
}

// runOf is a run as lists show it.
func runOf(info *workflowpb.WorkflowExecutionInfo) *v1.Run {
	known := visibility.Decode(info.GetSearchAttributes())
	return &v1.Run{
		Id:          info.GetExecution().GetWorkflowId(),
		Name:        known.Workflow,
		State:       listedState(info, known),
		Reason:      reasonOf(info.GetStatus()),
		CreatedAt:   submittedAt(info, known),
		CompletedAt: info.GetCloseTime(),
		Problem:     listedProblem(info),
		SubmittedBy: known.Owner,
		Batch:       known.Batch,
	}
}

// submittedAt is when a run was submitted. One that no control process has begun may not say so yet.
func submittedAt(info *workflowpb.WorkflowExecutionInfo, known visibility.Attributes) *timestamppb.Timestamp {
	if known.Submitted.IsZero() {
		return info.GetStartTime()
	}
	return timestamppb.New(known.Submitted)
}

// listedState is the state of a run as lists show it: the one in its search attributes where that is more exact than the status in Temporal.
func listedState(info *workflowpb.WorkflowExecutionInfo, known visibility.Attributes) string {
	state := stateOf(info.GetStatus())
	switch {
	case state == v1.RunRunning:
		return cmp.Or(known.State, v1.RunPending)
	case info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED && known.State == v1.RunRejected:
		return known.State
	}
	return state
}

// memoText is a text in the memo of a run; empty: it has none.
func memoText(info *workflowpb.WorkflowExecutionInfo, key string) string {
	var text string
	payload := info.GetMemo().GetFields()[key]
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &text) != nil {
		return ""
	}
	return text
}
