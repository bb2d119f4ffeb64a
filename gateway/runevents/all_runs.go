package runevents

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// MaxRuns is the number of runs that a page of the events of all runs reads.
const MaxRuns = 30

// runPlace is a position in the events of all runs: a run with its position in the list of runs, and a place in its
// events.
type runPlace struct {
	run      string
	position paging.Position
	at       *eventPlace // nil if the place is after the last event of the run
}

// listOfRuns fills a page of the events of all runs, the newest run first.
func (r *Reader) listOfRuns(ctx context.Context, pages paging.List, page *eventPage) (*v1.ListRunEventsResponse, error) {
	pages += "*" // without the run id, the request would have the same list name as one for a single run
	from, err := decodeRunEvent(pages, page.filter.GetPageToken())
	if err != nil {
		return nil, err
	}
	var runs []runPlace
	var after *paging.Position
	if from != nil {
		after = &from.position
		if from.at != nil {
			runs = append(runs, *from)
		}
	}
	filter, query := page.filter.runFilter()
	found, err := r.index.NewestRuns(ctx, query, after, MaxRuns+1, filter.Matches)
	if err != nil {
		return nil, fmt.Errorf("list the runs with events: %w", err)
	}
	for _, info := range found {
		runs = append(runs, runPlace{run: info.GetExecution().GetWorkflowId(), position: paging.PositionOf(info), at: &eventPlace{}})
	}
	next, err := r.readRuns(ctx, page, runs)
	if err != nil {
		return nil, err
	}
	res := &v1.ListRunEventsResponse{Items: page.items, Warnings: page.warnings}
	if next != nil {
		res.NextPageToken = encodeRunEvent(pages, *next)
	}
	return res, nil
}

// readRuns fills a page with the events of several runs, one after the other. It returns the start of the next page, or
// nil at the end of the last run. Runs that no longer exist are skipped, and those that cannot be read are named in the
// warnings.
func (r *Reader) readRuns(ctx context.Context, page *eventPage, runs []runPlace) (*runPlace, error) {
	listing := r.runs.NewListing()
	for k, run := range runs {
		if k == MaxRuns || !page.hasRoom() {
			last := runs[k-1]
			last.at = nil
			return &last, nil
		}
		v, err := listing.Read(ctx, run.run)
		if rpcerror.CodeOf(err) == connect.CodeNotFound {
			continue
		}
		if err == nil {
			run.at, err = r.readRun(ctx, page, v, *run.at)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case runview.IsOfOneRun(err), err != nil && rpcerror.CodeOf(err) == connect.CodeNotFound: // a not-found error here means that the store has lost a part
			page.warnings = append(page.warnings, fmt.Sprintf("the events of run %s are left out: %v", run.run, err))
		case err != nil:
			return nil, err
		case run.at != nil:
			return &run, nil
		}
	}
	return nil, nil
}
