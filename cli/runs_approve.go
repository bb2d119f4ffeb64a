package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsApprove(sys *system) *cobra.Command {
	var version int32
	return runAction{
		use: "approve RUN [TASK]", short: "Approve a run or a task that waits for approval", least: 1, most: 2, reason: true,
		long: `Approves a waiting task of type approval; without TASK, approves the run itself, which
waits for an operator if the gateway was started with --approve-runs-of user. If a retry
has changed the run, name the version that you have seen with --definition-version.`,
		flags: func(flags *pflag.FlagSet) {
			flags.Int32Var(&version, "definition-version", 0, "version of the run to approve, as runs get shows it; 0 is the run as submitted")
		},
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			if task == "" {
				return idOf(ctx, a, a.Runs.ApproveRun, &v1.ApproveRunRequest{Id: run, Reason: reason, DefinitionVersion: version})
			}
			return idOf(ctx, a, a.Runs.ApproveTask, &v1.ApproveTaskRequest{Id: run, Task: task, Reason: reason})
		},
		done:   func(run, task string) string { return ofRun(run, task) + " is approved" },
		remedy: waitingForApproval,
	}.command(sys)
}

// ofRun describes a task of a run, or the run if task is "".
func ofRun(run, task string) string {
	if task == "" {
		return "run " + run
	}
	return fmt.Sprintf("task %s of run %s", task, run)
}

// waitingForApproval explains how to find the tasks that can be approved or rejected.
func waitingForApproval(run, task string) string {
	if task == "" {
		return fmt.Sprintf("give TASK to decide on a task of type approval; `switchyard runs get %s` shows those that wait as paused", run)
	}
	return fmt.Sprintf("`switchyard runs get %s` shows the tasks that wait for approval as paused", run)
}
