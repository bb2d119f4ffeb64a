package cli

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

func newDLQList(sys *system) *cobra.Command {
	req := &v1.ListDeadLettersRequest{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, newest first",
		Args:  arguments(0, 0, ""),
	}
	cmd.Flags().StringVar(&req.Run, "run", "", "only those of this run")
	cmd.Flags().StringVar(&req.Type, "type", "", "only tasks of this type")
	cmd.Flags().StringVar(&req.Node, "node", "", "only tasks whose last attempt was on this node")
	gateway, list := clientFlag(cmd), listFlags(cmd, "runs' dead letters", 100, 1000)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, _ []string) error {
		if err := list.check(); err != nil {
			return err
		}
		req.PageSize, req.PageToken = list.limit, list.token
		page, err := call(ctx, a, a.calls.ListDeadLetters, req)
		if err != nil {
			return err
		}
		items, err := messages(page.GetItems())
		if err != nil {
			return err
		}
		return writeList(sys, list, items, page.GetNextPageToken(), func(w io.Writer) error {
			rows := [][]string{{"RUN", "TASK", "TYPE", "ATTEMPTS", "NODE", "SINCE", "ERROR"}}
			for _, d := range page.GetItems() {
				node := ""
				if n := len(d.GetAttempts()); n > 0 {
					node = d.GetAttempts()[n-1].GetNode()
				}
				rows = append(rows, []string{
					d.GetRun(), d.GetTask(), d.GetType(), strconv.Itoa(len(d.GetAttempts())), node, sys.at(d.GetDeadLetteredAt()), tui.OneLine(d.GetError()),
				})
			}
			return writeTable(w, rows)
		})
	})
	return cmd
}
