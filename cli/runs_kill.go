package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsKill(sys *system) *cobra.Command {
	return runAction{
		use: "kill RUN TASK", short: "Kill one task: it is stopped, fails as killed, and is not retried", least: 2, most: 2, reason: true,
		long: `Kills one task of a run that has not ended. A waiting task ends at once; a running task
is stopped as by cancel: with SIGTERM, and SIGKILL 10 s later, unless its field stop says
otherwise. If it does not complete before that, it ends as killed, which counts as a
failure of the run, and is not retried. TASK may be an instance, such as "each[3]"; a
fanned-out task is killed with all of its instances.`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Runs.KillTask, &v1.KillTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done: func(run, task string) string { return fmt.Sprintf("task %s of run %s is being killed", task, run) },
		remedy: func(run, _ string) string {
			return fmt.Sprintf("a task that has ended cannot be killed; `switchyard runs get %s` shows how it ended", run)
		},
	}.command(sys)
}
