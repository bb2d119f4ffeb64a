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
		Use:   "events [RUN]",
		Short: "List every transition of every task of a run, oldest first, or of all runs, the newest run first",
		Args:  arguments(0, 1, "RUN"),
	}
	cmd.Flags().StringVar(&req.Task, "task", "", "only those of this task")
	cmd.Flags().StringVar(&req.After, "after", "", "only those after the event with this id, which -o json tells")
	event := &choice{allowed: v1.EventWords()}
	cmd.Flags().Var(event, "event", "only those of this kind, such as failed")
	cmd.Flags().StringVar(&req.Node, "node", "", "only those that happened on this node")
	var since, until string
	cmd.Flags().StringVar(&since, "since", "", "only those within this time, such as 10m, or since a time such as 2026-03-14T15:09:26Z")
	cmd.Flags().StringVar(&until, "until", "", "only those that are older than this, such as 10m, or before a time such as 2026-03-14T15:09:26Z")
	gateway, list := clientFlag(cmd), listFlags(cmd, "events", 1000, 10_000)
	cmd.RunE = onGateway(gateway, func(ctx context.Context, a *api, args []string) error {
		if err := list.check(); err != nil {
			return err
		}
		if err := parseSpan(req, since, until, sys.now()); err != nil {
			return err
		}
		req.Event, req.PageSize, req.PageToken = event.value, list.limit, list.token
		if len(args) > 0 {
			run, err := sys.shownRun(ctx, a, args[0])
			if err != nil {
				return err
			}
			req.Id = run
		} else if req.GetAfter() != "" {
			return usageError("--after %s: an event belongs to one run; name that RUN, too", req.GetAfter())
		}
		page, err := call(ctx, a, a.calls.ListRunEvents, req)
		if err != nil {
			return err
		}
		items, err := messages(page.GetItems())
		if err != nil {
			return err
		}
		return writeList(sys, list, items, page.GetNextPageToken(), func(w io.Writer) error {
			return writeTable(w, eventRows(page.GetItems(), req.GetId() == "", sys.zone))
		})
	})
	return cmd
}

// parseSpan reads the flags --since and --until of a list of events.
func parseSpan(req *v1.ListRunEventsRequest, since, until string, now time.Time) (err error) {
	if since != "" {
		if req.Since, err = parseTime("since", since, now); err != nil {
			return err
		}
	}
	if until != "" {
		if req.Until, err = parseTime("until", until, now); err != nil {
			return err
		}
	}
	if since != "" && until != "" && !req.GetSince().AsTime().Before(req.GetUntil().AsTime()) {
		return usageError("--until %s is not later than --since %s; no event can be between them", until, since)
	}
	return nil
}

// eventRows are the rows of a table of events, those of several runs with their run.
func eventRows(events []*v1.Event, ofRuns bool, zone *time.Location) [][]string {
	rows := [][]string{{"TIME", "TASK", "EVENT", "NODE", "ATTEMPT", "DETAIL"}}
	for _, e := range events {
		attempt := ""
		if e.GetNode() != "" {
			attempt = strconv.Itoa(int(e.GetAttempt()))
		}
		at := e.GetAt().AsTime().In(zone).Format(time.DateTime + ".000")
		rows = append(rows, []string{at, e.GetTask(), e.GetEvent(), e.GetNode(), attempt, tui.OneLine(e.GetDetail())})
	}
	if ofRuns {
		rows[0] = append([]string{"RUN"}, rows[0]...)
		for i, e := range events {
			rows[i+1] = append([]string{e.GetRun()}, rows[i+1]...)
		}
	}
	return rows
}
