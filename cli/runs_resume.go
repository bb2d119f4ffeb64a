package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsResume(sys *system) *cobra.Command {
	return action{
		use: "resume RUN [TASK]", short: "Go on with a paused run or task", least: 1, most: 2,
		ask: func(ctx context.Context, a *api, run, task, _ string) (string, error) {
			if task == "" {
				return answered(ctx, a, a.calls.ResumeRun, &v1.ResumeRunRequest{Id: run})
			}
			return answered(ctx, a, a.calls.ResumeTask, &v1.ResumeTaskRequest{Id: run, Task: task})
		},
		said: func(run, task string) string {
			if task == "" {
				return fmt.Sprintf("run %s goes on", run)
			}
			return fmt.Sprintf("task %s of run %s goes on", task, run)
		},
		remedy: func(run, task string) string {
			if task == "" {
				return fmt.Sprintf("only a paused run can be resumed; one that has ended goes on with `switchyard runs retry %s`", run)
			}
			return fmt.Sprintf("only a task that `switchyard runs pause %[1]s %[2]s` has paused can be resumed; `switchyard runs release %[1]s %[2]s` lets a held one start", run, shellWord(task))
		},
	}.command(sys)
}
