package gateway

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// maxEventRuns is how many runs a page of the events of all runs reads.
const maxEventRuns = 30

// runEventPlace is a place in the events of all runs: in those of one run, which has a position in the list of runs.
type runEventPlace struct {
	run      string
	position position
	at       *eventPlace // or nil if the place is after the last event of the run
}

// listEventsOfRuns fills a page of the events of all runs, the newest run first.
func (g *Gateway) listEventsOfRuns(ctx context.Context, pages list, page *eventPage) (*v1.ListRunEventsResponse, error) {
	pages += "*" // but for the run, which the name of a list leaves out, the request is the same as for one run
	from, err := pages.decodeRunEvent(page.filter.GetPageToken())
	if err != nil {
		return nil, err
	}
	var runs []runEventPlace
	var after *position
	if from != nil {
		after = &from.position
		if from.at != nil {
			runs = append(runs, *from)
		}
	}
	filter, query := page.filter.runs()
	found, err := g.newestRuns(ctx, query, after, maxEventRuns+1, filter.matches)
	if err != nil {
		return nil, fmt.Errorf("list the runs with events: %w", err)
	}
	for _, info := range found {
		runs = append(runs, runEventPlace{run: info.GetExecution().GetWorkflowId(), position: positionOf(info), at: &eventPlace{}})
	}
	next, err := g.readRuns(ctx, page, runs)
	if err != nil {
		return nil, err
	}
	res := &v1.ListRunEventsResponse{Items: page.items}
	if next != nil {
		res.NextPageToken = pages.encodeRunEvent(*next)
	}
	return res, nil
}

// readRuns fills a page with the events of runs, one after the other. It returns where the next page starts, or nil if the
// page has reached the end of the last run. A run that is gone by now has no events.
func (g *Gateway) readRuns(ctx context.Context, page *eventPage, runs []runEventPlace) (*runEventPlace, error) {
	for k, run := range runs {
		if k == maxEventRuns || !page.hasRoom() {
			last := runs[k-1]
			last.at = nil
			return &last, nil
		}
		v, err := g.reader.read(ctx, run.run)
		if codeOf(err) == connect.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if run.at, err = g.readRun(ctx, page, v, *run.at); err != nil {
			return nil, err
		}
		if run.at != nil {
			return &run, nil
		}
	}
	return nil, nil
}
