package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsReject(sys *system) *cobra.Command {
	return runAction{
		use: "reject RUN TASK", short: "Reject a task that waits for approval, which fails it", least: 2, most: 2, reason: true,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Runs.RejectTask, &v1.RejectTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done:   func(run, task string) string { return fmt.Sprintf("task %s of run %s is rejected", task, run) },
		remedy: waitingForApproval,
	}.command(sys)
}
