package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsPause(sys *system) *cobra.Command {
	return runAction{
		use: "pause RUN [TASK]", short: "Keep a run from starting tasks, or suspend a running task", least: 1, most: 2, reason: true,
		long: `Keeps a run from starting new tasks; running tasks continue. With TASK, suspends that
task, which must be running: its processes stand still until it is resumed, and the time
does not count against its timeout (it does against its deadline). TASK may be an
instance, such as "each[3]".`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			if task == "" {
				return idOf(ctx, a, a.Runs.PauseRun, &v1.PauseRunRequest{Id: run, Reason: reason})
			}
			return idOf(ctx, a, a.Runs.PauseTask, &v1.PauseTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done: func(run, task string) string {
			if task == "" {
				return fmt.Sprintf("run %s is paused; `switchyard runs resume %s` continues it", run, run)
			}
			return fmt.Sprintf("task %s of run %s is paused; `switchyard runs resume %s %s` continues it", task, run, run, output.ShellWord(task))
		},
		remedy: func(run, task string) string {
			if task == "" {
				return fmt.Sprintf("only an open run can be paused; `switchyard runs get %s` shows its state", run)
			}
			return fmt.Sprintf("only a running task can be paused; `switchyard runs hold %s %s` keeps a waiting one from starting", run, output.ShellWord(task))
		},
	}.command(sys)
}
