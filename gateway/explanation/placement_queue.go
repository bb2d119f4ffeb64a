package explanation

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/submission"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// queue rates nodes for tasks. It is safe for concurrent use.
type queue interface {
	// explain returns the ratings of the nodes for the tasks of a request.
	explain(ctx context.Context, ask *historyv1.ExplainRequest) (*historyv1.ExplainResponse, error)
}

// placementQueue queries the placement queue.
type placementQueue struct{ client client.Client }

// explainTimeout bounds an explanation by the placement queue. It is long enough for another process to take the queue
// over if its owner dies.
const explainTimeout = 10 * time.Second

// newTaskRequest returns the request that a run would send to the placement queue for a task.
func newTaskRequest(name string, def *v1.TaskDefinition, options *v1.RunOptions, now time.Time) *historyv1.TaskRequest {
	return &historyv1.TaskRequest{
		Task: name, Type: def.GetType(), Constraints: definition.Constraints(def), Resources: def.GetResources(),
		Container: definition.ContainerNeeds(def), Needs: definition.TaskNeeds(def), Priority: def.GetPriority(), QueuedAt: timestamppb.New(now),
		PlacementTimeout: definition.PlacementTimeout(def, options.GetPlacementTimeout()),
		Gang:             definition.GangRequest(name, def),
	}
}

// explain queries the placement queue about tasks of a run.
func (q placementQueue) explain(ctx context.Context, ask *historyv1.ExplainRequest) (*historyv1.ExplainResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	asked, err := q.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       names.NewExplainID(ask.GetRunId()),
		TaskQueue:                names.ControlQueue,
		WorkflowExecutionTimeout: explainTimeout,
		WorkflowTaskTimeout:      submission.TaskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, names.ExplainWorkflow, ask)
	if err != nil {
		return nil, fmt.Errorf("ask the placement queue: %w", err)
	}
	var said historyv1.ExplainResponse
	if err := asked.Get(ctx, &said); err != nil {
		if ctx.Err() != nil || rpcerror.IsTimeout(err) {
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("the placement queue did not answer within %s; is a gateway running that can own it?", explainTimeout))
		}
		return nil, fmt.Errorf("ask the placement queue: %w", err)
	}
	return &said, nil
}
