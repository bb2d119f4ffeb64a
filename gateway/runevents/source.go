package runevents

import (
	"context"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// eventSource is a workflow that holds events of a generation of a run: the run itself, or a child that carries a part
// of a fan-out. It keeps one part of the events in memory at a time.
type eventSource struct {
	id, home   string
	generation int32
	// live reports whether the workflow may hold events that are not stored. silent reports whether it may not answer,
	// because it was closed from outside or makes no progress.
	live, silent bool
	wanted       func(*v1.Event) bool

	part     int32
	offset   int
	held     []*v1.Event // events of the current part, from number base on, or nil if it has not been read
	base     int
	unstored bool      // the part was not stored when it was read
	done     bool      // there are no more events
	newest   time.Time // time of the newest event that has been returned, or later
	last     int64     // number of the last event that has been returned
}

// head returns the next wanted event, or nil if there are no more.
func (s *eventSource) head(ctx context.Context, r *Reader) (*v1.Event, error) {
	for !s.done {
		if s.held == nil {
			if err := r.readPart(ctx, s); err != nil {
				return nil, err
			}
			if s.held == nil {
				s.done = true
				break
			}
		}
		end := s.base + len(s.held)
		if s.offset > end && !s.unstored {
			// The part was longer before it was stored.
			s.part, s.offset, s.held = s.part+1, s.offset-end, nil
			continue
		}
		for ; s.offset < end; s.offset++ {
			if e := s.held[s.offset-s.base]; s.wanted(e) {
				return e, nil
			}
		}
		if s.unstored {
			s.done = true // the part may grow, and the next read continues in it
			break
		}
		s.part, s.offset, s.held = s.part+1, 0, nil
	}
	return nil, nil
}

// reset makes the next call of head look for newer events.
func (s *eventSource) reset() {
	if s.done {
		s.done = false
	}
}

// at returns the time by which the head is sorted. The order of events within a workflow takes precedence over clocks.
func (s *eventSource) at(head *v1.Event) time.Time { return later(head.GetAt().AsTime(), s.newest) }

// advance moves past the head.
func (s *eventSource) advance(head *v1.Event) {
	s.newest = s.at(head)
	if _, _, number, ok := names.ParseEventID(head.GetId()); ok {
		s.last = number
	}
	s.offset++
}

// hasBegun reports whether any event of the source has been read.
func (s *eventSource) hasBegun() bool { return s.done || s.part > 0 || s.offset > 0 }
