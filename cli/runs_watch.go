package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/follow"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsWatch(sys *system) *cobra.Command {
	var logs bool
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run to its end; the exit code tells whether it completed",
		Long:  "Follows a run to its end; the exit code tells whether it completed.\n\n" + follow.FanOutRule,
		Args:  arguments(1, 1, "RUN"),
	}
	cmd.Flags().BoolVar(&logs, "logs", false, "also show the output of the tasks")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON, output.JSONL)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		// The ID is resolved once, because "last" may soon be another run.
		page, err := client.Call(ctx, a, a.Runs.GetRun, &v1.GetRunRequest{Id: args[0], PageSize: 1})
		if err != nil {
			return err
		}
		w := &follow.Watcher{Terminal: sys.terminal(), Client: a, Run: page.GetRun().GetId(), Format: format.Value, Logs: logs}
		return w.Watch(ctx)
	})
	return cmd
}
