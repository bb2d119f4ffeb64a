package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// ListRunEvents tells the transitions of the tasks of a run, over all its
// generations, or those of all runs. The workflow keeps the newest events, the store the others. That
// an attempt has started the workflow learns with its end; until then the
// heartbeat tells, and the last page of a run holds that event too.
func (g *Gateway) ListRunEvents(ctx context.Context, req *connect.Request[v1.ListRunEventsRequest]) (*connect.Response[v1.ListRunEventsResponse], error) {
	pages, err := listOf(req.Msg)
	if err != nil {
		return nil, err
	}
	filter, err := newEventFilter(req.Msg)
	if err != nil {
		return nil, err
	}
	page := &eventPage{filter: filter, limit: cmp.Or(int(req.Msg.GetPageSize()), defaultEventPage)}
	fill := g.listEventsOfRuns
	if req.Msg.GetId() != "" {
		fill = g.listEventsOfRun
	}
	res, err := fill(ctx, pages, page)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

// listEventsOfRun fills a page of the events of the run that the filter names.
func (g *Gateway) listEventsOfRun(ctx context.Context, pages list, page *eventPage) (*v1.ListRunEventsResponse, error) {
	filter := page.filter
	id, err := g.resolve(ctx, filter.GetId())
	if err != nil {
		return nil, err
	}
	at, err := pages.decodeEvent(filter.GetPageToken(), id)
	if err != nil {
		return nil, err
	}
	if filter.after != nil && !filter.after.passed {
		at.Generation = filter.after.generation
	}
	v, err := g.reader.read(ctx, id)
	if err != nil {
		return nil, err
	}
	if task := filter.GetTask(); task != "" {
		if _, err := g.reader.subject(ctx, v, task); err != nil {
			return nil, err
		}
	}
	next, err := g.readRun(ctx, page, v, at)
	if err != nil {
		return nil, err
	}
	if filter.after != nil && !filter.after.passed {
		return nil, invalid("run %s has no event %s", id, filter.GetAfter())
	}
	res := &v1.ListRunEventsResponse{Items: page.items}
	if next != nil {
		res.NextPageToken = pages.encodeEvent(id, *next)
	}
	return res, nil
}

// eventPart returns the part of the events of a source that it is at; nil when there is no such part.
func (g *Gateway) eventPart(ctx context.Context, s *eventSource) ([]*v1.Event, error) {
	for {
		var stored v1.EventPart
		err := g.store.GetMessage(ctx, store.EventsKey(s.home, s.generation, s.part), &stored)
		if err == nil {
			return append([]*v1.Event{}, stored.GetEvents()...), nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if !s.live {
			return nil, nil // one that ends by itself stores all of them
		}
		unstored, parts, err := g.reader.unstoredEvents(ctx, s.id)
		switch {
		case err != nil && (s.silent || lasting(err)):
			g.log.Debug("a workflow does not tell its events", "workflow", s.id, "error", err)
			return nil, nil
		case err != nil:
			return nil, err
		case parts == s.part:
			return unstored, nil
		case parts < s.part:
			return nil, nil
		}
		// It has been stored in the meantime, unless it was lost.
		if _, err := g.store.Get(ctx, store.EventsKey(s.home, s.generation, s.part)); err != nil {
			return nil, err
		}
	}
}

// unstoredEvents asks the workflow of a run for the events that it holds, and
// for the number of parts that it has stored before them.
func (r *reader) unstoredEvents(ctx context.Context, id string) (events []*v1.Event, parts int32, err error) {
	for {
		answer, err := r.queryEvents(ctx, id, len(events))
		if err != nil {
			return nil, 0, fmt.Errorf("ask the workflow: %w", err)
		}
		if len(events) > 0 && answer.GetParts() != parts {
			events = nil // what has been read so far is stored by now
			continue
		}
		events, parts = append(events, answer.GetEvents()...), answer.GetParts()
		if !answer.GetMore() || len(answer.GetEvents()) == 0 {
			return append([]*v1.Event{}, events...), parts, nil
		}
	}
}

func (r *reader) queryEvents(ctx context.Context, id string, offset int) (*v1.EventsResponse, error) {
	answer := &v1.EventsResponse{}
	return answer, r.query(ctx, id, names.EventsQuery, &v1.EventsRequest{Offset: int32(min(offset, math.MaxInt32))}, answer)
}
