package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsHold(sys *system) *cobra.Command {
	return action{
		use: "hold RUN TASK", short: "Hold a task back that has not started", least: 2, most: 2, reason: true,
		long: `Holds a task back that has not started, until it is released. The rest of the run
goes on. TASK may be an instance, such as "each[3]".`,
		ask: func(ctx context.Context, a *api, run, task, reason string) (string, error) {
			return answered(ctx, a, a.calls.HoldTask, &v1.HoldTaskRequest{Id: run, Task: task, Reason: reason})
		},
		said: func(run, task string) string {
			return fmt.Sprintf("task %s of run %s is held; `switchyard runs release %s %s` lets it start", task, run, run, shellWord(task))
		},
		remedy: func(run, task string) string {
			return fmt.Sprintf("only a task that has not started can be held; `switchyard runs cancel %s %s` stops one that has", run, shellWord(task))
		},
	}.command(sys)
}
