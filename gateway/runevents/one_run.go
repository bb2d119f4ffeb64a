package runevents

import (
	"cmp"
	"context"

	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// listOfRun fills a page of the events of the run that the filter names.
func (r *Reader) listOfRun(ctx context.Context, pages paging.List, page *eventPage) (*v1.ListRunEventsResponse, error) {
	filter := page.filter
	id, err := r.index.Resolve(ctx, filter.GetId())
	if err != nil {
		return nil, err
	}
	at, err := decodeEvent(pages, filter.GetPageToken(), id)
	if err != nil {
		return nil, err
	}
	if filter.after != nil && !filter.after.passed {
		at.Generation = filter.after.generation
	}
	v, err := r.runs.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if task := filter.GetTask(); task != "" {
		if _, err := r.runs.TaskRef(ctx, v, task); err != nil {
			return nil, err
		}
	}
	next, err := r.readRun(ctx, page, v, at)
	if err != nil {
		return nil, err
	}
	if filter.after != nil && !filter.after.passed {
		return nil, rpcerror.Invalid("run %s has no event %s", id, filter.GetAfter())
	}
	res := &v1.ListRunEventsResponse{Items: page.items, After: page.after}
	if filter.GetPageToken() == "" {
		res.After = cmp.Or(page.after, filter.GetAfter())
	}
	if next != nil {
		res.NextPageToken = encodeEvent(pages, id, *next)
	}
	return res, nil
}
