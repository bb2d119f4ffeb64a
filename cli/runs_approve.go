package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsApprove(sys *system) *cobra.Command {
	return action{
		use: "approve RUN TASK", short: "Approve a task that waits for approval", least: 2, most: 2, reason: true,
		ask: func(ctx context.Context, a *api, run, task, reason string) (string, error) {
			return answered(ctx, a, a.calls.ApproveTask, &v1.ApproveTaskRequest{Id: run, Task: task, Reason: reason})
		},
		said:   func(run, task string) string { return fmt.Sprintf("task %s of run %s is approved", task, run) },
		remedy: waitingForApproval,
	}.command(sys)
}

// waitingForApproval says how to find what can be approved or rejected.
func waitingForApproval(run, _ string) string {
	return fmt.Sprintf("only a task of type approval that waits for it can be approved or rejected; `switchyard runs get %s` shows those that do as paused", run)
}
