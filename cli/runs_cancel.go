package cli

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/follow"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsCancel(sys *system) *cobra.Command {
	var force, now bool
	request := uuid.NewString() // the same when the call is repeated, because its answer was lost
	var answer *v1.CancelRunResponse
	return runAction{
		use: "cancel RUN [TASK]", short: "Cancel a run or one of its tasks: waiting tasks are cancelled, running tasks stopped",
		long: `Cancels a run, or one of its tasks that has not ended: waiting tasks are cancelled,
running tasks are stopped. TASK may be an instance, such as "each[3]"; a fanned-out task
is cancelled with all of its instances. Tasks below a cancelled task are skipped, as they
are below a failed one.

The tasks of finally run after that. --now ends those, too: what has begun of them is
stopped, and the rest does not start. So does a second cancel once finally has begun.

Use --force if a run does not respond (its "problem" says why): the run, its child runs
and the parts of its fan-outs are terminated, and the nodes stop their tasks; finally
does not run. The run has then failed with the reason "terminated"; it can be retried, and
"runs retry RUN --finally-only" runs what was left out of finally.`,
		least: 1, most: 2, reason: true,
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&force, "force", false, "end the run at once, whatever its state")
			f.BoolVar(&now, "now", false, "end the tasks of finally, too")
		},
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			switch {
			case force && now:
				return "", exit.Usagef("--force and --now are mutually exclusive: --force ends finally, too")
			case task != "" && now:
				return "", exit.Usagef("--now is for whole runs; without it, the task is cancelled at once, too")
			}
			if task != "" {
				if force {
					return "", exit.Usagef("--force only ends whole runs; leave TASK out, or kill the task with `switchyard runs kill %s %s`", run, output.ShellWord(task))
				}
				return idOf(ctx, a, a.Runs.CancelTask, &v1.CancelTaskRequest{Id: run, Task: task, Reason: reason})
			}
			res, err := client.Call(ctx, a, a.Runs.CancelRun, &v1.CancelRunRequest{Id: run, Reason: reason, Force: force, Now: now, RequestId: request})
			answer = res
			return res.GetId(), err
		},
		done: func(run, task string) string {
			switch {
			case force:
				return follow.ForcedText(answer)
			case answer.GetFinallyRuns():
				return fmt.Sprintf("the tasks of run %[1]s have ended, and its finally runs on; `switchyard runs cancel %[1]s --now` ends it", run)
			case task == "":
				return fmt.Sprintf("run %s is being cancelled", run)
			}
			return fmt.Sprintf("task %s of run %s is being cancelled", task, run)
		},
		document: func() map[string]any {
			if !answer.GetFinallyRuns() {
				return nil
			}
			return map[string]any{"finallyRuns": true}
		},
		remedy: func(run, _ string) string {
			return fmt.Sprintf("a task that has ended cannot be cancelled; `switchyard runs get %s` shows how it ended", run)
		},
	}.command(sys)
}
