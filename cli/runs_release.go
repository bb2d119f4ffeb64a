package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsRelease(sys *system) *cobra.Command {
	return runAction{
		use: "release RUN TASK", short: "Let a held task start", least: 2, most: 2,
		send: func(ctx context.Context, a *client.Client, run, task, _ string) (string, error) {
			return idOf(ctx, a, a.Runs.ReleaseTask, &v1.ReleaseTaskRequest{Id: run, Task: task})
		},
		done: func(run, task string) string { return fmt.Sprintf("task %s of run %s may start", task, run) },
		remedy: func(run, _ string) string {
			return fmt.Sprintf("`switchyard runs get %s` shows which tasks are held", run)
		},
	}.command(sys)
}
