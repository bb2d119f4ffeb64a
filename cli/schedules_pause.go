package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newSchedulesPause(sys *system) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Pause a schedule until it is resumed",
		Long: `Pauses a schedule until it is resumed, even if its workflow is stored again. Its open
runs continue, and "schedules trigger" still starts runs.`,
		Args: arguments(1, 1, "NAME"),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason to show with the change")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Schedules.PauseSchedule, &v1.PauseScheduleRequest{Name: args[0], Reason: reason})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res.GetSchedule())
		}
		_, err = fmt.Fprintf(sys.screen, "schedule %[1]s is paused; `switchyard schedules resume %[1]s` continues it\n", res.GetSchedule().GetName())
		return err
	})
	return cmd
}
