package runindex

import (
	"context"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ActiveSince returns the newest executions of the open runs and of those that have closed since a given time, regardless of
// owner: of each kind, the n that started or closed last. It costs two visibility queries.
func (x *Index) ActiveSince(ctx context.Context, since time.Time, n int) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var found []*workflowpb.WorkflowExecutionInfo
	for _, condition := range []string{"CloseTime IS NULL", "CloseTime >= " + QuoteTime(timestamppb.New(since))} {
		res, err := x.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: RunsQuery + " AND " + condition, PageSize: int32(min(n, MaxPage)),
		})
		if err != nil {
			return nil, err
		}
		found = append(found, res.GetExecutions()...)
	}
	return keepNewest(found, len(found)), nil
}
