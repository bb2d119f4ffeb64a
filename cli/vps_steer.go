package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	v1 "switchyard/proto/switchyard/v1"
)

func newVpsStop(sys *system) *cobra.Command {
	return runAction{
		use: "stop RUN [TASK]", short: "Stop a machine: its programs end, and it ends as stopped, which is a success", least: 1, most: 2, reason: true,
		long: `Stops a machine: its programs are asked to end, and killed if they do not. Its task ends
as stopped, which is a success. Its disk is deleted; the contents of mounts are kept. TASK
is needed if the run has several machines, and may be an instance, such as "desk[3]".`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Vps.StopVps, &v1.StopVpsRequest{Id: run, Task: task, Reason: reason})
		},
		done:   func(run, _ string) string { return fmt.Sprintf("machine %s is being stopped", run) },
		remedy: vpsRemedy,
	}.command(sys)
}

func newVpsRestart(sys *system) *cobra.Command {
	return runAction{
		use: "restart RUN [TASK]", short: "Restart a machine, keeping its disk", least: 1, most: 2, reason: true,
		long: `Stops the programs of a machine and starts it again on the same node, with the same disk.
Open sessions end. TASK is as for stop.`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Vps.RestartVps, &v1.RestartVpsRequest{Id: run, Task: task, Reason: reason})
		},
		done:   func(run, _ string) string { return fmt.Sprintf("machine %s is being restarted", run) },
		remedy: vpsRemedy,
	}.command(sys)
}

func newVpsKill(sys *system) *cobra.Command {
	return runAction{
		use: "kill RUN [TASK]", short: "Kill a machine in any state, which counts as a failure of its run", least: 1, most: 2, reason: true,
		long: `Kills a machine in any state before its end, even if its node is unreachable: it ends as
killed, which counts as a failure of its run. TASK is as for stop.`,
		send: func(ctx context.Context, a *client.Client, run, task, reason string) (string, error) {
			return idOf(ctx, a, a.Vps.KillVps, &v1.KillVpsRequest{Id: run, Task: task, Reason: reason})
		},
		done:   func(run, _ string) string { return fmt.Sprintf("machine %s is being killed", run) },
		remedy: vpsRemedy,
	}.command(sys)
}

// vpsRemedy returns what a user can do about a machine whose state does not allow a request.
func vpsRemedy(run, task string) string {
	if task != "" {
		task = " " + task
	}
	return fmt.Sprintf("`switchyard vps status %s%s` shows its state", run, task)
}
