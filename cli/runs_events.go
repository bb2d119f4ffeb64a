package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newRunsEvents(sys *system) *cobra.Command {
	req := &v1.ListRunEventsRequest{}
	event := &output.Choice{Allowed: v1.EventWords()}
	var since, until string
	cmd := listCommand[*v1.Event]{
		use: "events [RUN]", short: "List the events of a run, oldest first, or of all runs, the newest run first",
		args: arguments(0, 1, "RUN"),
		what: "events", limit: 1000, most: 10_000,
		fetch: func(ctx context.Context, a *client.Client, args []string, size int32, token string) (listPage[*v1.Event], error) {
			if err := parseSpan(req, since, until, sys.now()); err != nil {
				return nil, err
			}
			req.Event, req.PageSize, req.PageToken = event.Value, size, token
			if len(args) > 0 {
				run, err := sys.resolveRun(ctx, a, args[0])
				if err != nil {
					return nil, err
				}
				req.Id = run
			} else if req.GetAfter() != "" {
				return nil, exit.Usagef("--after %s: it needs RUN, since the value belongs to one run", req.GetAfter())
			}
			return a.Events(ctx, req)
		},
		rows: func(events []*v1.Event) [][]string { return sys.eventRows(events, req.GetId() == "") },
		keep: 4,
	}.command(sys)
	cmd.Flags().StringVar(&req.Task, "task", "", "only events of this task")
	cmd.Flags().StringVar(&req.After, "after", "", "only events that the run recorded after this: the \"after\" of an earlier list with -o json")
	cmd.Flags().Var(event, "event", "only events of this kind, such as failed")
	cmd.Flags().StringVar(&req.Node, "node", "", "only events on this node")
	cmd.Flags().StringVar(&since, "since", "", "only events newer than a duration such as 10m, or since a time such as 2026-03-14T15:09:26Z")
	cmd.Flags().StringVar(&until, "until", "", "only events older than a duration such as 10m, or before a time such as 2026-03-14T15:09:26Z")
	return cmd
}

// parseSpan parses the flags --since and --until of a list of events.
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
		return exit.Usagef("--until %s is not later than --since %s, so there can be no events between them", until, since)
	}
	return nil
}

// dateWidth is the terminal width from which event times show the date, and millisecondWidth the width from which they
// show milliseconds.
const dateWidth, millisecondWidth = 100, 60

// eventRows returns the rows of a table of events. Events of several runs name their run.
func (s *system) eventRows(events []*v1.Event, ofRuns bool) [][]string {
	layout := time.DateTime + ".000"
	switch width := s.dataWidth(); {
	case width == 0 || width >= dateWidth:
	case width >= millisecondWidth:
		layout = time.TimeOnly + ".000"
	default:
		layout = time.TimeOnly
	}
	rows := [][]string{{"TIME", "TASK", "EVENT", "NODE", "ATTEMPT", "DETAIL"}}
	for _, e := range events {
		attempt := ""
		if e.GetNode() != "" {
			attempt = strconv.Itoa(int(e.GetAttempt()))
		}
		at := e.GetAt().AsTime().In(s.zone).Format(layout)
		rows = append(rows, []string{at, e.GetTask(), e.GetEvent(), e.GetNode(), attempt, words.OneLine(e.GetDetail())})
	}
	if ofRuns {
		rows[0] = append([]string{"RUN"}, rows[0]...)
		for i, e := range events {
			rows[i+1] = append([]string{e.GetRun()}, rows[i+1]...)
		}
	}
	return rows
}
