package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsReject(sys *system) *cobra.Command {
	return runAction{
		use: "reject RUN [TASK]", short: "Reject a run or a task that waits for approval, which ends it", least: 1, most: 2, reason: true,
		long: `Rejects a waiting task of type approval, which then fails; without TASK, rejects the run
itself, which then ends as rejected.`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			if task == "" {
				return idOf(ctx, a, a.Runs.RejectRun, &v1.RejectRunRequest{Id: run, Reason: reason})
			}
			return idOf(ctx, a, a.Runs.RejectTask, &v1.RejectTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done:   func(run, task string) string { return ofRun(run, task) + " is rejected" },
		remedy: waitingForApproval,
	}.command(sys)
}
