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
		use: "kill RUN TASK", short: "Kill one task: it is stopped, has failed as killed, and is not tried again", least: 2, most: 2, reason: true,
		long: `Kills one task of a run in any state before its end. What waits ends at once, what
runs is stopped as by cancel: SIGTERM, and SIGKILL 10 s later. Unless it completes
before that, it ends as killed, which is a failure of the run, and is not tried again.
TASK may be an instance, such as "each[3]"; a fanned-out task goes with all of its
instances.`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Runs.KillTask, &v1.KillTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done: func(run, task string) string { return fmt.Sprintf("task %s of run %s is being killed", task, run) },
		remedy: func(run, _ string) string {
			return fmt.Sprintf("what has ended cannot be killed; `switchyard runs get %s` shows how it ended", run)
		},
	}.command(sys)
}
