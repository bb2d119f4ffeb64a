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
	// defaultPage is how many events a page holds when the request does not say.
	defaultPage = 1000
	// maxPassed is how many events that it does not show a page reads.
	maxPassed = 100_000
)

// eventPage is a page of a list of events while it is filled.
type eventPage struct {
	filter *Filter
	limit  int
	items  []*v1.Event
	size   int // of the items, in bytes
	passed int // events that the filter does not want
	// warnings name the runs that cannot be read.
	warnings []string
	after    string // id of the last event that was read, or "" if none was
}

// hasRoom reports whether the page may read another event.
func (p *eventPage) hasRoom() bool { return len(p.items) < p.limit && p.passed < maxPassed }

// isFull reports whether the next page begins with an event. A page that has no items takes any one.
func (p *eventPage) isFull(e *v1.Event) bool {
	return !p.hasRoom() || len(p.items) > 0 && p.size+proto.Size(e) > paging.MaxBytes
}

// read adds an event if the filter wants it.
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

// readRun fills a page with the events of a run from a place on. It returns where the next page starts in them, or nil if
// the page has reached their end.
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
