package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// defaultEventPage is how many events a page holds when the request does not say.
const defaultEventPage = 1000

// ListRunEvents tells the transitions of the tasks of a run, over all its
// generations. The workflow keeps the newest events, the store the others. That
// an attempt has started the workflow learns with its end; until then the
// heartbeat tells, and the last page holds that event too.
func (g *Gateway) ListRunEvents(ctx context.Context, req *connect.Request[v1.ListRunEventsRequest]) (*connect.Response[v1.ListRunEventsResponse], error) {
	id, err := g.resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	pages, err := listOf(req.Msg)
	if err != nil {
		return nil, err
	}
	at, err := pages.decodeEvent(req.Msg.GetPageToken(), id)
	if err != nil {
		return nil, err
	}
	after, err := parseAfter(req.Msg.GetAfter())
	if err != nil {
		return nil, err
	}
	if req.Msg.GetPageToken() == "" && after != nil {
		at.Generation = after.generation
	}
	v, err := g.reader.read(ctx, id)
	if err != nil {
		return nil, err
	}
	task := req.Msg.GetTask()
	if task != "" {
		if _, err := g.reader.subject(ctx, v, task); err != nil {
			return nil, err
		}
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultEventPage
	}
	var items []*v1.Event
	var next *eventPlace
	switch {
	case after == nil:
		items, next, err = g.eventPage(ctx, v, task, at, limit, everyEvent)
	case req.Msg.GetPageToken() == "":
		items, next, err = g.eventPage(ctx, v, "", at, limit, after.wants(task))
		if err == nil && !after.passed {
			err = invalid("run %s has no event %s", id, req.Msg.GetAfter())
		}
	default: // the page before has passed it
		items, next, err = g.eventPage(ctx, v, "", at, limit, func(e *v1.Event) bool { return task == "" || concerns(e, task) })
	}
	if err != nil {
		return nil, err
	}
	res := &v1.ListRunEventsResponse{}
	if next != nil {
		res.NextPageToken = pages.encodeEvent(id, *next)
	} else {
		items = append(items, startedEvents(v, task, items)...)
	}
	res.Items = inOrder(items)
	return connect.NewResponse(res), nil
}

func everyEvent(*v1.Event) bool { return true }

// afterEvent is the event after which a list begins.
type afterEvent struct {
	id         string
	generation int32
	passed     bool
}

// parseAfter returns the event with an id, or nil if none is named.
func parseAfter(id string) (*afterEvent, error) {
	if id == "" {
		return nil, nil
	}
	generation, _, _, ok := names.ParseEventID(id)
	if !ok {
		return nil, invalid("%q is no id of an event; one is 0-12", id)
	}
	return &afterEvent{id: id, generation: generation}, nil
}

// wants returns whether an event, in the order of the list, comes after this one and is of a task, or of any.
func (a *afterEvent) wants(task string) func(*v1.Event) bool {
	return func(e *v1.Event) bool {
		if !a.passed {
			a.passed = e.GetId() == a.id
			return false
		}
		return task == "" || concerns(e, task)
	}
}

// eventPage collects those events of a task, or of all, from a place on that are wanted, and returns
// where the next page starts; nil: there is none.
func (g *Gateway) eventPage(ctx context.Context, v *view, task string, at eventPlace, limit int, wanted func(*v1.Event) bool) (items []*v1.Event, next *eventPlace, err error) {
	size := 0
	for ; at.Generation <= v.run.GetGeneration(); at = (eventPlace{Generation: at.Generation + 1}) {
		m, err := g.merge(ctx, v, task, at)
		if err != nil {
			return nil, nil, fmt.Errorf("read the events of run %s: %w", v.run.GetId(), err)
		}
		for {
			source, e, err := m.next(ctx, g)
			if err != nil {
				return nil, nil, fmt.Errorf("read the events of run %s: %w", v.run.GetId(), err)
			}
			if e == nil {
				break
			}
			if len(items) < limit && !wanted(e) {
				source.take(e)
				continue
			}
			if size += proto.Size(e); len(items) == limit || size > taskPageBytes && len(items) > 0 {
				place := m.place()
				return items, &place, nil
			}
			items = append(items, e)
			source.take(e)
		}
	}
	return items, nil, nil
}

// concerns says that an event is of a task, of an instance of it, or of the instance of that name.
func concerns(e *v1.Event, name string) bool {
	if e.GetTask() == name {
		return true
	}
	of, _, ok := names.ParseInstanceName(e.GetTask())
	return ok && of == name
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
		case err != nil && (s.outside || lasting(err)):
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
