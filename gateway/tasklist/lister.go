package tasklist

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// MaxRuns is the number of runs that a page reads.
	MaxRuns = 30
	// MaxSearched is the number of instances that a page reads.
	MaxSearched = 10_000
	// defaultPage is the number of tasks on a page if the request names no size.
	defaultPage = 100
)

// Lister lists tasks. It is safe for concurrent use.
type Lister struct {
	index *runindex.Index
	runs  *runview.Reader
	nodes Nodes
	needs *needsCache
	now   func() time.Time
}

// New returns a lister of the tasks of the runs in an index.
func New(index *runindex.Index, runs *runview.Reader, nodes Nodes, now func() time.Time) *Lister {
	return &Lister{index, runs, nodes, &needsCache{runs: runs}, now}
}

// List returns a page of the requested tasks. A page may be short or empty even if there is a next page.
func (l *Lister) List(ctx context.Context, req *v1.ListTasksRequest) (*v1.ListTasksResponse, error) {
	pages, err := paging.ListOf(req)
	if err != nil {
		return nil, err
	}
	from, err := decodePlace(pages, req.GetPageToken())
	if err != nil {
		return nil, err
	}
	runs, err := l.runsFrom(ctx, req, from)
	if err != nil {
		return nil, err
	}
	page := &page{filter: req, room: cmp.Or(int(req.GetPageSize()), defaultPage), search: MaxSearched, now: l.now()}
	next, err := l.fill(ctx, page, runs)
	if err != nil {
		return nil, err
	}
	res := &v1.ListTasksResponse{Items: page.items, Warnings: page.warnings}
	if next != nil {
		res.NextPageToken = encodePlace(pages, *next)
	}
	return res, nil
}

// runsFrom returns the places of the runs that a page reads, and at most one more.
func (l *Lister) runsFrom(ctx context.Context, req *v1.ListTasksRequest, from *place) ([]place, error) {
	if req.GetRun() != "" {
		id, err := l.index.Resolve(ctx, req.GetRun())
		if err != nil {
			return nil, err
		}
		if from == nil {
			return []place{{run: id}}, nil
		}
		if from.run != id {
			return nil, rpcerror.Invalid("the page token belongs to run %s", from.run)
		}
		return []place{*from}, nil
	}
	var runs []place
	var after *paging.Position
	if from != nil {
		after = &from.position
		if !from.ended {
			runs = append(runs, *from)
		}
	}
	query, match, err := l.search(ctx, req)
	if err != nil {
		return nil, err
	}
	found, err := l.index.NewestRuns(ctx, query, after, MaxRuns+1, match)
	if err != nil {
		return nil, fmt.Errorf("list the runs with tasks: %w", err)
	}
	for _, info := range found {
		runs = append(runs, place{run: info.GetExecution().GetWorkflowId(), position: paging.PositionOf(info)})
	}
	return runs, nil
}

// fill fills a page with the tasks of several runs, one after the other. It returns the start of the next page, or nil at
// the end of the last run. Runs that no longer exist are skipped, and those that cannot be read are named in the warnings.
func (l *Lister) fill(ctx context.Context, page *page, runs []place) (*place, error) {
	listing := l.runs.NewListing()
	for k, run := range runs {
		if k == MaxRuns || k > 0 && page.room == 0 {
			last := runs[k-1]
			last.ended, last.task, last.index = true, "", 0
			return &last, nil
		}
		v, err := listing.Read(ctx, run.run)
		if rpcerror.CodeOf(err) == connect.CodeNotFound {
			continue
		}
		var next *place
		if err == nil {
			next, err = l.readRun(ctx, page, v, run)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case runview.IsOfOneRun(err), err != nil && rpcerror.CodeOf(err) == connect.CodeNotFound: // a not-found error here means that the store has lost a part
			page.warnings = append(page.warnings, fmt.Sprintf("cannot list the tasks of run %s: %v", run.run, err))
		case err != nil:
			return nil, err
		case next != nil:
			return next, nil
		}
	}
	return nil, nil
}
