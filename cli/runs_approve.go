package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsApprove(sys *system) *cobra.Command {
	return runAction{
		use: "approve RUN TASK", short: "Approve a task that waits for approval", least: 2, most: 2, reason: true,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Runs.ApproveTask, &v1.ApproveTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done:   func(run, task string) string { return fmt.Sprintf("task %s of run %s is approved", task, run) },
		remedy: waitingForApproval,
	}.command(sys)
}

// waitingForApproval says how to find what can be approved or rejected.
func waitingForApproval(run, _ string) string {
	return fmt.Sprintf("only a task of type approval that waits for it can be approved or rejected; `switchyard runs get %s` shows those that do as paused", run)
}
