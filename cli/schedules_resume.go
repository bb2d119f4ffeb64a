package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

func newSchedulesResume(sys *system) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "Resume a paused schedule",
		Long: `Resumes a paused schedule from its next time on. Times that have passed are skipped;
"schedules backfill" starts their runs.`,
		Args: arguments(1, 1, "NAME"),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason to show with the change")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		res, err := client.Call(ctx, a, a.Schedules.ResumeSchedule, &v1.ResumeScheduleRequest{Name: args[0], Reason: reason})
		if err != nil {
			return err
		}
		s := res.GetSchedule()
		if format.Value == output.JSON {
			return output.WriteMessage(sys.stdout, s)
		}
		_, err = fmt.Fprintf(sys.screen, "schedule %s %s\n", s.GetName(), scheduleNews(s))
		return err
	})
	return cmd
}
