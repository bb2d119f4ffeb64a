package runindex

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/paging"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Totals counts the runs that match a filter and that the caller may see, by state. It ignores the state in the filter. Every
// state has an entry. Temporal counts executions, so Totals subtracts those that a retry has replaced. Only the MaxPage newest
// retries are considered for that, and a run that was reset in Temporal counts once per execution.
func (x *Index) Totals(ctx context.Context, f RunFilter) (map[string]int32, error) {
	totals := map[string]int32{}
	for _, state := range v1.RunStates() {
		totals[state] = 0
	}
	f.ListRunsRequest = proto.CloneOf(f.ListRunsRequest)
	f.State = ""
	scope := scopeOf(ctx)
	query, any := scope.narrow(f.Query())
	if !any {
		return totals, nil
	}
	if err := x.countByState(ctx, query, totals); err != nil {
		return nil, err
	}
	retries, _ := scope.narrow(f.retries().Query())
	replaced, err := x.replacedBy(ctx, retries, query)
	if err != nil {
		return nil, err
	}
	for _, info := range replaced {
		totals[runview.ListedRun(info).GetState()]--
	}
	for state, n := range totals {
		totals[state] = max(n, 0) // the queries run one after the other, so a count may be inconsistent
	}
	return totals, nil
}

// Total counts the runs that match a filter and that the caller may see, like Totals.
func (x *Index) Total(ctx context.Context, f RunFilter) (int32, error) {
	scope := scopeOf(ctx)
	query, any := scope.narrow(f.Query())
	if !any {
		return 0, nil
	}
	res, err := x.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return 0, fmt.Errorf("count runs: %w", err)
	}
	retries, _ := scope.narrow(f.retries().Query())
	replaced, err := x.replacedBy(ctx, retries, query)
	return max(0, int32(res.GetCount())-int32(len(replaced))), err
}

// CountOpen counts the open runs that some owners have submitted, whoever the caller is.
func (x *Index) CountOpen(ctx context.Context, owners []string) (int32, error) {
	var quoted []string
	for _, owner := range owners {
		if ValidateValue("owner", owner) == nil {
			quoted = append(quoted, quote(owner))
		}
	}
	if len(quoted) == 0 {
		return 0, nil
	}
	query := submittedQuery + AndOpen + " AND " + names.OwnerAttribute + " IN (" + strings.Join(quoted, ", ") + ")"
	res, err := x.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return 0, fmt.Errorf("count open runs: %w", err)
	}
	return int32(res.GetCount()), nil
}

// retries returns a filter for the executions that have replaced an earlier generation, limited to the criteria that all
// generations of a run share.
func (f RunFilter) retries() RunFilter {
	req := &v1.ListRunsRequest{Name: f.GetName(), Since: f.GetSince(), Owner: f.GetOwner(), Batch: f.GetBatch(), Trigger: v1.TriggerRetry}
	return RunFilter{ListRunsRequest: req, parent: f.parent}
}

// countByState adds the number of executions that a query selects to totals, by state. Temporal groups only by its own status,
// so each state that only search attributes distinguish takes a query of its own, if it can have any runs.
func (x *Index) countByState(ctx context.Context, query string, totals map[string]int32) error {
	res, err := x.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query + " GROUP BY ExecutionStatus"})
	if err != nil {
		return fmt.Errorf("count runs: %w", err)
	}
	for _, group := range res.GetGroups() {
		var word string
		if len(group.GetGroupValues()) != 1 || converter.GetDefaultDataConverter().FromPayload(group.GetGroupValues()[0], &word) != nil {
			continue
		}
		status, err := enumspb.WorkflowExecutionStatusFromString(word)
		if err != nil {
			continue
		}
		totals[runview.StateOf(status)] += int32(group.GetCount())
	}
	// Open runs without another state are pending.
	open := totals[v1.RunRunning]
	totals[v1.RunRunning], totals[v1.RunPending] = 0, open
	split := map[string]string{v1.RunPendingApproval: v1.RunPending, v1.RunRunning: v1.RunPending, v1.RunPaused: v1.RunPending, v1.RunRejected: v1.RunFailed}
	for _, state := range slices.Sorted(maps.Keys(split)) {
		of := split[state]
		if totals[of] <= 0 {
			continue
		}
		res, err := x.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query + " AND " + stateQueries[state]})
		if err != nil {
			return fmt.Errorf("count runs in state %s: %w", state, err)
		}
		totals[state] += int32(res.GetCount())
		totals[of] -= int32(res.GetCount())
	}
	return nil
}

// replacedBy returns the executions selected by query that a later generation has replaced. The retries query selects the
// later generations.
func (x *Index) replacedBy(ctx context.Context, retries, query string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	res, err := x.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: retries, PageSize: MaxPage})
	if err != nil {
		return nil, fmt.Errorf("list the runs that were retried: %w", err)
	}
	newest := map[string]paging.Position{}
	for _, info := range res.GetExecutions() {
		id, at := info.GetExecution().GetWorkflowId(), paging.PositionOf(info)
		if best, known := newest[id]; runIDText().MatchString(id) && (!known || at.Before(best)) {
			newest[id] = at
		}
	}
	var replaced []*workflowpb.WorkflowExecutionInfo
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(newest)), idsAtOnce) {
		err := x.eachOf(ctx, query+" AND ExecutionStatus != 'Running'", ids, func(info *workflowpb.WorkflowExecutionInfo) {
			if newest[info.GetExecution().GetWorkflowId()].Before(paging.PositionOf(info)) {
				replaced = append(replaced, info)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("list the generations of runs: %w", err)
		}
	}
	return replaced, nil
}
