package cli

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsEvents(sys *system) *cobra.Command {
	req := &v1.ListRunEventsRequest{}
	cmd := &cobra.Command{
		Use:   "events RUN",
		Short: "List every transition of every task of a run, oldest first",
		Args:  arguments(1, 1, "RUN"),
	}
	cmd.Flags().StringVar(&req.Task, "task", "", "only those of this task")
	cmd.Flags().StringVar(&req.After, "after", "", "only those after the event with this id, which -o json tells")
	gateway, list := clientFlag(cmd), listFlags(cmd, "events", 1000, 10_000)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		if err := list.check(); err != nil {
			return err
		}
		run, err := sys.shownRun(ctx, a, args[0])
		if err != nil {
			return err
		}
		req.Id, req.PageSize, req.PageToken = run, list.limit, list.token
		page, err := call(ctx, a, a.calls.ListRunEvents, req)
		if err != nil {
			return err
		}
		items, err := messages(page.GetItems())
		if err != nil {
			return err
		}
		return writeList(sys, list, items, page.GetNextPageToken(), func(w io.Writer) error {
			rows := [][]string{{"TIME", "TASK", "EVENT", "NODE", "ATTEMPT", "DETAIL"}}
			for _, e := range page.GetItems() {
				attempt := ""
				if e.GetNode() != "" {
					attempt = strconv.Itoa(int(e.GetAttempt()))
				}
				at := e.GetAt().AsTime().In(sys.zone).Format(time.DateTime + ".000")
				rows = append(rows, []string{at, e.GetTask(), e.GetEvent(), e.GetNode(), attempt, tui.OneLine(e.GetDetail())})
			}
			return writeTable(w, rows)
		})
	})
	return cmd
}
