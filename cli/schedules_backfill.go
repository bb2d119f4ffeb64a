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

func newSchedulesBackfill(sys *system) *cobra.Command {
	var from, to string
	overlap := &output.Choice{Allowed: v1.Overlaps()}
	cmd := &cobra.Command{
		Use:   "backfill NAME --from TIME [--to TIME]",
		Short: "Start the runs that a schedule would have started in a period",
		Long: `Starts the runs that a schedule, paused or not, would have started in a period but did
not, one after the other unless --overlap says otherwise, and prints their times.`,
		Example: `  switchyard schedules backfill nightly --from 72h
  switchyard schedules backfill nightly --from 2026-03-01T00:00:00Z --to 2026-03-14T00:00:00Z`,
		Args: arguments(1, 1, "NAME"),
	}
	cmd.Flags().StringVar(&from, "from", "", "start of the period: how long ago, such as 72h, or a time such as 2026-03-14T15:09:26Z")
	cmd.Flags().StringVar(&to, "to", "0s", "end of the period, in the same form")
	cmd.Flags().Var(overlap, "overlap", "what to do while a run of the schedule is open: skip, queue, replace or allow (default queue)")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if from == "" {
			return exit.Usagef("--from is missing")
		}
		req := &v1.BackfillScheduleRequest{Name: args[0], Overlap: overlap.Value}
		now := sys.now()
		var err error
		if req.From, err = parseTime("from", from, now); err != nil {
			return err
		}
		if req.To, err = parseTime("to", to, now); err != nil {
			return err
		}
		res, err := client.Call(ctx, a, a.Schedules.BackfillSchedule, req)
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res)
		}
		for _, t := range res.GetTimes() {
			if _, err := fmt.Fprintln(sys.stdout, t.AsTime().In(sys.zone).Format(zonedTime)); err != nil {
				return err
			}
		}
		there := ""
		if n := res.GetExisting(); n > 0 {
			there = fmt.Sprintf(" (%d times already have theirs)", n)
		}
		_, err = fmt.Fprintf(sys.screen, "schedule %s starts %d runs%s; `switchyard runs list --trigger schedule` shows them\n", args[0], len(res.GetTimes()), there)
		return err
	})
	return cmd
}
