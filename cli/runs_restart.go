package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsRestart(sys *system) *cobra.Command {
	return runAction{
		use: "restart RUN TASK", short: "Restart the machine of a task that runs until stopped, such as a vps", least: 2, most: 2, reason: true,
		long: `Restarts the machine of a task that runs until stopped, such as a vps: all its programs
end, and it starts again with the same disk. The task continues with the same attempt.
TASK may be an instance, such as "each[3]".`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Runs.RestartTask, &v1.RestartTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done: func(run, task string) string { return fmt.Sprintf("task %s of run %s has been restarted", task, run) },
		remedy: func(run, _ string) string {
			return fmt.Sprintf("only a running vps can be restarted; `switchyard runs get %s` shows its state", run)
		},
	}.command(sys)
}
