package main

import (
	"context"
	"os/exec"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// This file has the minimal code that a Go programmer would write for this purpose: a workflow for the chain, one for
// the fan-out, and an activity that runs a shell command.

const (
	workflowQueue = "by-hand"
	activityQueue = "by-hand-machine"
)

func shellByHand(ctx context.Context, command string) error {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return exec.CommandContext(ctx, "sh", "-c", command).Run()
}

func withActivity(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           activityQueue,
		StartToCloseTimeout: time.Hour,
		HeartbeatTimeout:    15 * time.Second,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

// chainByHand runs a command n times in sequence.
func chainByHand(ctx workflow.Context, n int, command string) error {
	ctx = withActivity(ctx)
	for range n {
		if err := workflow.ExecuteActivity(ctx, shellByHand, command).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// fanOutByHand runs a command n times in parallel.
func fanOutByHand(ctx workflow.Context, n int, command string) error {
	ctx = withActivity(ctx)
	var futures []workflow.Future
	for range n {
		futures = append(futures, workflow.ExecuteActivity(ctx, shellByHand, command))
	}
	for _, f := range futures {
		if err := f.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}
