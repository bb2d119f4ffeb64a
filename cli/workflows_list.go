package cli

import (
	"context"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newWorkflowsList(sys *system) *cobra.Command {
	var search string
	cmd := listCommand[*v1.StoredWorkflow]{
		use: "list", short: "List the stored definitions by name",
		what: "definitions", limit: 100, most: 1000,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.StoredWorkflow], error) {
			return client.Call(ctx, a, a.Workflows.ListWorkflows, &v1.ListWorkflowsRequest{Search: search, PageSize: size, PageToken: token})
		},
		rows: func(items []*v1.StoredWorkflow) [][]string {
			rows := [][]string{{"NAME", "UPDATED", "SCHEDULE", "A2A", "DESCRIPTION"}}
			for _, item := range items {
				times := scheduleTimes(item.GetCron(), item.GetTimezone())
				if item.GetPaused() {
					times += " (paused)"
				}
				a2a := ""
				if item.GetA2A() {
					a2a = "yes"
				}
				rows = append(rows, []string{item.GetName(), item.GetUpdatedAt(), times, a2a, words.OneLine(item.GetDescription())})
			}
			return rows
		},
	}.command(sys)
	cmd.Flags().StringVar(&search, "search", "", "only definitions with this text in their name or description, ignoring case")
	return cmd
}
