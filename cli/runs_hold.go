package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsHold(sys *system) *cobra.Command {
	return runAction{
		use: "hold RUN TASK", short: "Hold back a task that has not started", least: 2, most: 2, reason: true,
		long: `Holds back a task that has not started until it is released. The rest of the run
continues. TASK may be an instance, such as "each[3]".`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Runs.HoldTask, &v1.HoldTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done: func(run, task string) string {
			return fmt.Sprintf("task %s of run %s is held; `switchyard runs release %s %s` lets it start", task, run, run, output.ShellWord(task))
		},
		remedy: func(run, task string) string {
			return fmt.Sprintf("only a task that has not started can be held; `switchyard runs cancel %s %s` stops a running one", run, output.ShellWord(task))
		},
	}.command(sys)
}
