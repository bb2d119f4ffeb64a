package runindex

import (
	"context"
	"fmt"
	"slices"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"switchyard/workflows/names"
)

// OpenOfType returns up to most ids of open runs that have tasks of a type and start with prefix, regardless of owner. It costs
// one visibility query.
func (x *Index) OpenOfType(ctx context.Context, taskType, prefix string, most int) ([]string, error) {
	if !runIDText().MatchString(prefix) {
		return nil, nil
	}
	query := RunsQuery + " AND ExecutionStatus = 'Running' AND " + names.TypesAttribute + " = " + quote(taskType) + " AND WorkflowId STARTS_WITH " + quote(prefix)
	res, err := x.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: int32(most)})
	if err != nil {
		return nil, fmt.Errorf("look for runs that begin with %s: %w", prefix, err)
	}
	var ids []string
	for _, info := range res.GetExecutions() {
		if id := info.GetExecution().GetWorkflowId(); strings.HasPrefix(id, prefix) && !slices.Contains(ids, id) { // some databases ignore case
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// EachOpenOfTypes calls visit with each open run that has tasks of the given types, regardless of owner, until visit returns
// false.
func (x *Index) EachOpenOfTypes(ctx context.Context, taskTypes []string, visit func(*workflowpb.WorkflowExecutionInfo) bool) error {
	var quoted []string
	for _, taskType := range taskTypes {
		quoted = append(quoted, quote(taskType))
	}
	req := &workflowservice.ListWorkflowExecutionsRequest{
		Query: RunsQuery + " AND ExecutionStatus = 'Running' AND " + names.TypesAttribute + " IN (" + strings.Join(quoted, ", ") + ")", PageSize: MaxPage,
	}
	for {
		res, err := x.client.ListWorkflow(ctx, req)
		if err != nil {
			return fmt.Errorf("look for open runs with tasks of the types %s: %w", strings.Join(taskTypes, ", "), err)
		}
		for _, info := range res.GetExecutions() {
			if !visit(info) {
				return nil
			}
		}
		if req.NextPageToken = res.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}
