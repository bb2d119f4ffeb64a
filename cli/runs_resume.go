package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsResume(sys *system) *cobra.Command {
	return runAction{
		use: "resume RUN [TASK]", short: "Resume a paused run or task", least: 1, most: 2,
		send: func(ctx context.Context, a *client.Client, run, task, _ string) (string, error) {
			if task == "" {
				return idOf(ctx, a, a.Runs.ResumeRun, &v1.ResumeRunRequest{Id: run})
			}
			return idOf(ctx, a, a.Runs.ResumeTask, &v1.ResumeTaskRequest{Id: run, Task: task})
		},
		done: func(run, task string) string {
			if task == "" {
				return fmt.Sprintf("run %s continues", run)
			}
			return fmt.Sprintf("task %s of run %s continues", task, run)
		},
		remedy: func(run, task string) string {
			if task == "" {
				return fmt.Sprintf("only a paused run can be resumed; `switchyard runs retry %s` continues one that has ended", run)
			}
			return fmt.Sprintf("only a task paused by `switchyard runs pause %[1]s %[2]s` can be resumed; `switchyard runs release %[1]s %[2]s` lets a held one start", run, output.ShellWord(task))
		},
	}.command(sys)
}
