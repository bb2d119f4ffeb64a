package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsReject(sys *system) *cobra.Command {
	return action{
		use: "reject RUN TASK", short: "Reject a task that waits for approval, which fails it", least: 2, most: 2, reason: true,
		ask: func(ctx context.Context, a *api, run, task, reason string) (string, error) {
			return answered(ctx, a, a.calls.RejectTask, &v1.RejectTaskRequest{Id: run, Task: task, Reason: reason})
		},
		said:   func(run, task string) string { return fmt.Sprintf("task %s of run %s is rejected", task, run) },
		remedy: waitingForApproval,
	}.command(sys)
}
