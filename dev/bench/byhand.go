package main

import (
	"context"
	"os/exec"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// This file has the minimal code that a Go programmer would write for this purpose: a workflow for each shape, and one
// activity that runs a shell command.

const (
	workflowQueue = "by-hand"
	activityQueue = "by-hand-machine"
)

// shellByHand runs a command and returns when it started.
func shellByHand(ctx context.Context, command string) (time.Time, error) {
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
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	if err := cmd.Start(); err != nil {
		return time.Time{}, err
	}
	started := time.Now()
	return started, cmd.Wait()
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

// chainByHand runs a command n times in sequence, and returns when the first one started.
func chainByHand(ctx workflow.Context, n int, command string) (first time.Time, err error) {
	ctx = withActivity(ctx)
	for i := range n {
		var started time.Time
		if err := workflow.ExecuteActivity(ctx, shellByHand, command).Get(ctx, &started); err != nil {
			return first, err
		}
		if i == 0 {
			first = started
		}
	}
	return first, nil
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

// retryByHand runs a command, and if it fails, sleeps and runs it again.
func retryByHand(ctx workflow.Context, nap time.Duration, command string) error {
	ctx = withActivity(ctx)
	if err := workflow.ExecuteActivity(ctx, shellByHand, command).Get(ctx, nil); err == nil {
		return nil
	}
	if err := workflow.Sleep(ctx, nap); err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, shellByHand, command).Get(ctx, nil)
}
