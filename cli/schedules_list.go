package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newSchedulesList(sys *system) *cobra.Command {
	return listCommand[*v1.Schedule]{
		use: "list", short: "List the schedules by name",
		what: "schedules", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.Schedule], error) {
			return client.Call(ctx, a, a.Schedules.ListSchedules, &v1.ListSchedulesRequest{PageSize: size, PageToken: token})
		},
		rows: func(items []*v1.Schedule) [][]string {
			rows := [][]string{{"NAME", "STATE", "NEXT", "LAST RUN", "TIMES", "NOTE"}}
			for _, s := range items {
				last := ""
				if len(s.GetRuns()) > 0 {
					last = s.GetRuns()[0].GetRunId()
				}
				rows = append(rows, []string{
					s.GetName(), listedScheduleState(s), formatIn(firstTime(s), s.GetTimezone()), last, scheduleTimes(s.GetCron(), s.GetTimezone()), words.OneLine(s.GetNote()),
				})
			}
			return rows
		},
		keep: 3,
	}.command(sys)
}
