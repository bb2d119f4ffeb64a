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
		Short: "Have a schedule start a run now, and print its id",
		Long: `Has a schedule, paused or not, start a run now, as if one of its times had come, and
prints the id of the run. To start a stored workflow with an input of its own, use
"submit --workflow NAME".`,
		Args: arguments(1, 1, "NAME"),
	}
	cmd.Flags().Var(overlap, "overlap", "what to do while a run of the schedule is open: skip, queue, replace or allow (default as it says)")
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
			_, err = fmt.Fprintf(sys.screen, "nothing was started: a run of schedule %s is open; --overlap allow starts another one beside it\n", args[0])
		default:
			_, err = fmt.Fprintf(sys.screen, "the run starts later, after those before it; `switchyard schedules get %s` shows it\n", args[0])
		}
		return err
	})
	return cmd
}
