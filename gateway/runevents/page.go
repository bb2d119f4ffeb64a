package runevents

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"switchyard/gateway/paging"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// defaultPage is the number of events on a page if the request names no size.
	defaultPage = 1000
	// maxPassed bounds the number of events that a page reads without showing them.
	maxPassed = 100_000
)

// eventPage is a page of events while it is being filled.
type eventPage struct {
	filter *Filter
	limit  int
	items  []*v1.Event
	size   int // total size of the items in bytes
	passed int // number of events that did not match the filter
	// warnings name the runs that cannot be read.
	warnings []string
	after    string // id of the last event that was read, or ""
}

// hasRoom reports whether the page may read another event.
func (p *eventPage) hasRoom() bool { return len(p.items) < p.limit && p.passed < maxPassed }

// isFull reports whether an event must go to the next page. An empty page accepts any event.
func (p *eventPage) isFull(e *v1.Event) bool {
	return !p.hasRoom() || len(p.items) > 0 && p.size+proto.Size(e) > paging.MaxBytes
}

// read adds an event if it matches the filter.
func (p *eventPage) read(e *v1.Event) {
	p.after = cmp.Or(e.GetId(), p.after)
	switch after := p.filter.after; {
	case after != nil && !after.passed:
		after.passed = e.GetId() == after.id
	case p.filter.Wants(e):
		p.items = append(p.items, e)
		p.size += proto.Size(e)
	default:
		p.passed++
	}
}

// readRun fills a page with the events of a run from a place on. It returns the start of the next page, or nil at the end
// of the events.
func (r *Reader) readRun(ctx context.Context, page *eventPage, v *runview.View, at eventPlace) (*eventPlace, error) {
	first := len(page.items)
	next, err := r.readGenerations(ctx, page, v, at)
	if err != nil {
		return nil, fmt.Errorf("read the events of run %s: %w", v.Run.GetId(), err)
	}
	if next == nil {
		for _, e := range startedEvents(v, page.filter.GetTask(), page.items[first:]) {
			if page.filter.Wants(e) {
				page.items = append(page.items, e)
			}
		}
	}
	for _, e := range page.items[first:] {
		e.Run = v.Run.GetId()
	}
	copy(page.items[first:], sortByTime(page.items[first:]))
	return next, nil
}

func (r *Reader) readGenerations(ctx context.Context, page *eventPage, v *runview.View, at eventPlace) (*eventPlace, error) {
	for ; at.Generation <= v.Run.GetGeneration(); at = (eventPlace{Generation: at.Generation + 1}) {
		m, err := r.merge(ctx, v, page.filter.readTask(), at)
		if err != nil {
			return nil, err
		}
		for {
			source, e, err := m.next(ctx, r)
			if err != nil {
				return nil, err
			}
			if e == nil {
				break
			}
			if page.isFull(e) {
				place := m.place()
				return &place, nil
			}
			page.read(e)
			source.advance(e)
		}
	}
	return nil, nil
}
