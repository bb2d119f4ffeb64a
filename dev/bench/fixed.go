package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// chainFixed runs Switchyard's own activity n times in sequence on the queue of one node that is known in advance. It
// measures the cost of a run without placement, conditions and status.
func chainFixed(ctx workflow.Context, n int, req *v1.ExecuteRequest) error {
	req.RunId = workflow.GetInfo(ctx).WorkflowExecution.ID
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           names.NodeQueue(req.GetNode(), names.CPULane),
		StartToCloseTimeout: time.Hour,
		HeartbeatTimeout:    15 * time.Second,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	for i := range n {
		req.Task, req.Claim = fmt.Sprintf("t%d", i), 1
		var res v1.ExecuteResponse
		if err := workflow.ExecuteActivity(ctx, names.ExecuteActivity, req).Get(ctx, &res); err != nil {
			return err
		}
		if res.GetState() != v1.TaskCompleted {
			return fmt.Errorf("task %s is %s: %s", req.GetTask(), res.GetState(), res.GetError())
		}
	}
	return nil
}

func fixed(n int) func(context.Context, *cluster) (time.Duration, error) {
	t := task("true")
	return func(ctx context.Context, y *cluster) (time.Duration, error) {
		began := time.Now()
		run, err := y.conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflowQueue}, chainFixed, n, &v1.ExecuteRequest{
			Workflow: "fixed", Node: benchNode, Type: t.GetType(), Spec: t.GetSpec(),
			Resources: &v1.Resources{Cores: proto.Float64(0)}, InlineLimit: 1024,
		})
		if err != nil {
			return 0, err
		}
		took, err := y.await(ctx, run, began)
		if err != nil {
			return 0, err
		}
		return took, run.Get(ctx, nil)
	}
}
