package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

// maxTimes is the most times of a schedule that a gateway lists.
const maxTimes = 1000

func newSchedulesNext(sys *system) *cobra.Command {
	limit := int32(10)
	cmd := &cobra.Command{
		Use:   "next NAME",
		Short: "Print the next times of a schedule, in its time zone",
		Args:  arguments(1, 1, "NAME"),
	}
	cmd.Flags().Int32Var(&limit, "limit", limit, "maximum number of times to print, up to 1000")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if limit < 1 || limit > maxTimes {
			return exit.Usagef("--limit %d: it must be 1 to %d", limit, maxTimes)
		}
		res, err := client.Call(ctx, a, a.Schedules.ListScheduleTimes, &v1.ListScheduleTimesRequest{Name: args[0], Count: limit})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res)
		}
		for _, t := range res.GetTimes() {
			if _, err := fmt.Fprintln(sys.stdout, formatIn(t, res.GetTimezone())); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}
