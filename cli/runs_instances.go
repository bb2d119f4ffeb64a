package cli

import (
	"context"
	"encoding/json"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsInstances(sys *system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "instances RUN TASK",
		Short: "List the instances of a fanned-out task by number, page by page",
		Args:  arguments(2, 2, "RUN TASK"),
	}
	gateway, list := clientFlag(cmd), listFlags(cmd, "instances", 1000, 10_000)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		if err := list.check(); err != nil {
			return err
		}
		page, err := call(ctx, a, a.calls.ListInstances, &v1.ListInstancesRequest{Id: args[0], Task: args[1], PageSize: list.limit, PageToken: list.token})
		if err != nil {
			return withRemedy(err, func() string { return "`switchyard runs get " + args[0] + "` shows which tasks have fanned out" })
		}
		items := make([]json.RawMessage, 0, len(page.GetItems()))
		for _, i := range page.GetItems() {
			text, err := instanceJSON(i)
			if err != nil {
				return err
			}
			items = append(items, text)
		}
		return writeList(sys, list, items, page.GetNextPageToken(), func(w io.Writer) error {
			rows := [][]string{{"INDEX", "STATE", "NODE", "ATTEMPT", "ELAPSED", "NOTE"}}
			for _, i := range page.GetItems() {
				attempt, elapsed, note := tui.Columns(tui.InstanceTask(&v1.Task{}, i), sys.now())
				rows = append(rows, []string{strconv.Itoa(int(i.GetIndex())), i.GetState(), i.GetNode(), attempt, elapsed, note})
			}
			return writeTable(w, rows)
		})
	})
	return cmd
}

// instances calls take for each page of the instances of a task, by number.
func (a *api) instances(ctx context.Context, run, task string, take func([]*v1.Instance) error) error {
	req := &v1.ListInstancesRequest{Id: run, Task: task, PageSize: 10_000}
	for {
		page, err := call(ctx, a, a.calls.ListInstances, req)
		if err != nil {
			return err
		}
		if err := take(page.GetItems()); err != nil {
			return err
		}
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return nil
		}
	}
}
