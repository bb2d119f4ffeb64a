package runindex

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/workflowservice/v1"

	"switchyard/workflows/names"
)

// OpenOfType returns the ids of open runs that have tasks of a type and begin with a text, whoever owns them, at most a number of
// them. It asks Temporal once.
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
