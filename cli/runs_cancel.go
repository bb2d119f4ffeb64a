package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsCancel(sys *system) *cobra.Command {
	return action{
		use: "cancel RUN [TASK]", short: "Cancel a run, or one task of it: what waits is cancelled, what runs is stopped",
		long: `Cancels a run, or one task of it in any state before its end: what waits is
cancelled, what runs is stopped. TASK may be an instance, such as "each[3]"; a
fanned-out task goes with all of its instances. Tasks below a cancelled one are
skipped as they are below one that failed.`,
		least: 1, most: 2, reason: true,
		ask: func(ctx context.Context, a *api, run, task, reason string) (string, error) {
			if task == "" {
				return answered(ctx, a, a.calls.CancelRun, &v1.CancelRunRequest{Id: run, Reason: reason})
			}
			return answered(ctx, a, a.calls.CancelTask, &v1.CancelTaskRequest{Id: run, Task: task, Reason: reason})
		},
		said: func(run, task string) string {
			if task == "" {
				return fmt.Sprintf("run %s is being cancelled", run)
			}
			return fmt.Sprintf("task %s of run %s is being cancelled", task, run)
		},
		remedy: func(run, _ string) string {
			return fmt.Sprintf("what has ended cannot be cancelled; `switchyard runs get %s` shows how it ended", run)
		},
	}.command(sys)
}
