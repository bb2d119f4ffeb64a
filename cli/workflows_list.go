package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

func newWorkflowsList(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the stored definitions by name",
		Args:  arguments(0, 0, ""),
	}
	gateway, list := clientFlag(cmd), listFlags(cmd, "definitions", 100, 1000)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, _ []string) error {
		if err := list.check(); err != nil {
			return err
		}
		page, err := call(ctx, a, a.workflows.ListWorkflows, &v1.ListWorkflowsRequest{PageSize: list.limit, PageToken: list.token})
		if err != nil {
			return err
		}
		items, err := messages(page.GetItems())
		if err != nil {
			return err
		}
		return writeList(sys, list, items, page.GetNextPageToken(), func(w io.Writer) error {
			rows := [][]string{{"NAME", "UPDATED", "DESCRIPTION"}}
			for _, item := range page.GetItems() {
				rows = append(rows, []string{item.GetName(), item.GetUpdatedAt(), tui.OneLine(item.GetDescription())})
			}
			return writeTable(w, rows)
		})
	})
	return cmd
}
