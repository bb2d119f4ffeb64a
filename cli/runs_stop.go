package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsStop(sys *system) *cobra.Command {
	return runAction{
		use: "stop RUN TASK", short: "Stop a task that runs until stopped, such as a vps", least: 2, most: 2, reason: true,
		long: `Stops a task that runs until stopped, such as a vps: with SIGTERM, and SIGKILL 10 s
later, unless its field stop says otherwise. It ends as stopped, which is a success. If
its node is unreachable, the task ends at once, and the node removes the machine when it
returns. TASK may be an instance, such as "each[3]".`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Runs.StopTask, &v1.StopTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done: func(run, task string) string { return fmt.Sprintf("task %s of run %s is being stopped", task, run) },
		remedy: func(run, _ string) string {
			return fmt.Sprintf("only a task that runs until stopped, such as a vps, can be stopped; `switchyard runs get %s` shows its state", run)
		},
	}.command(sys)
}
