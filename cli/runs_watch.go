package cli

import (
	"context"

	"github.com/spf13/cobra"

	v1 "switchyard/proto/switchyard/v1"
)

func newRunsWatch(sys *system) *cobra.Command {
	var logs bool
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run to its end; the exit code tells how it ended",
		Long:  "Follows a run to its end; the exit code tells how it ended.\n\n" + fanRule,
		Args:  arguments(1, 1, "RUN"),
	}
	cmd.Flags().BoolVar(&logs, "logs", false, "show what the tasks print, too")
	gateway, output := clientFlag(cmd), outputFlag(cmd, formatText, formatJSON, formatJSONL)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		// The id once and for all: "last" may be another run in a moment.
		page, err := call(ctx, a, a.calls.GetRun, &v1.GetRunRequest{Id: args[0], PageSize: 1})
		if err != nil {
			return err
		}
		w := &watching{sys: sys, api: a, id: page.GetRun().GetId(), output: output.value, logs: logs}
		return w.watch(ctx)
	})
	return cmd
}
