package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newSchedulesTrigger(sys *system) *cobra.Command {
	overlap := &output.Choice{Allowed: v1.Overlaps()}
	cmd := &cobra.Command{
		Use:   "trigger NAME",
		Short: "Start a run of a schedule now, and print its id",
		Long: `Starts a run of a schedule, paused or not, as if one of its times had come, and prints
the id of the run. To start a stored workflow with a different input, use
"submit --workflow NAME".`,
		Args: arguments(1, 1, "NAME"),
	}
	cmd.Flags().Var(overlap, "overlap", "what to do while a run of the schedule is open: skip, queue, replace or allow (default its own setting)")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Schedules.TriggerSchedule, &v1.TriggerScheduleRequest{Name: args[0], Overlap: overlap.Value})
		if err != nil {
			return err
		}
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, res)
		}
		switch res.GetOutcome() {
		case v1.TriggerStarted:
			_, err = fmt.Fprintln(sys.stdout, res.GetRunId())
		case v1.TriggerSkipped:
			_, err = fmt.Fprintf(sys.screen, "no run was started: a run of schedule %s is still open; use --overlap allow to start another one\n", args[0])
		default:
			_, err = fmt.Fprintf(sys.screen, "the run is queued behind an open run; `switchyard schedules get %s` shows it\n", args[0])
		}
		return err
	})
	return cmd
}
