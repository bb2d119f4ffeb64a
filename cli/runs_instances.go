package cli

import (
	"context"
	"encoding/json"
	"io"
	"slices"
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
		run, err := sys.shownRun(ctx, a, args[0])
		if err != nil {
			return err
		}
		page, err := a.instanceList(ctx, &v1.ListInstancesRequest{Id: run, Task: args[1], PageSize: list.limit, PageToken: list.token})
		if err != nil {
			return withRemedy(err, func() string { return "`switchyard runs get " + run + "` shows which tasks have fanned out" })
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
			withItem := slices.ContainsFunc(page.GetItems(), func(i *v1.Instance) bool { return i.GetItem() != "" })
			if withItem {
				rows[0] = slices.Insert(rows[0], 1, "ITEM")
			}
			for _, i := range page.GetItems() {
				attempt, elapsed, note := tui.Columns(tui.InstanceTask(&v1.Task{}, i), sys.now())
				row := []string{strconv.Itoa(int(i.GetIndex())), i.GetState(), i.GetNode(), attempt, elapsed, note}
				if withItem {
					row = slices.Insert(row, 1, tui.OneLine(i.GetItem()))
				}
				rows = append(rows, row)
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

// instanceList returns as many instances as a request has a limit for, or all that
// there are. The gateway cuts its pages by their size, too.
func (a *api) instanceList(ctx context.Context, req *v1.ListInstancesRequest) (*v1.ListInstancesResponse, error) {
	all := &v1.ListInstancesResponse{}
	for limit := req.GetPageSize(); ; {
		page, err := call(ctx, a, a.calls.ListInstances, req)
		if err != nil {
			return nil, err
		}
		all.Items, all.NextPageToken = append(all.Items, page.GetItems()...), page.GetNextPageToken()
		req.PageSize, req.PageToken, req.First = limit-int32(len(all.Items)), page.GetNextPageToken(), 0
		if all.NextPageToken == "" || req.PageSize <= 0 {
			return all, nil
		}
	}
}
