package runevents

import (
	"context"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// eventSource is one of the workflows that have kept events of a generation of a run: the run itself, or a child
// that carries a part of a fan-out through. Of it, one part is in memory at a time.
type eventSource struct {
	id, home   string
	generation int32
	// live says that the workflow may hold events which are not stored. silent says that it may not answer, because it
	// was ended from outside or makes no progress.
	live, silent bool
	wanted       func(*v1.Event) bool

	part     int32
	offset   int
	held     []*v1.Event // of the part, from event number base on; nil: it was not read yet
	base     int
	unstored bool      // the part was not stored when it was read
	done     bool      // there are no more
	newest   time.Time // what has been taken is not later
	last     int64     // number of the last event that has been taken
}

// head returns the next event that is wanted, or nil if there are no more.
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
			// The part was longer when it had not been stored yet.
			s.part, s.offset, s.held = s.part+1, s.offset-end, nil
			continue
		}
		for ; s.offset < end; s.offset++ {
			if e := s.held[s.offset-s.base]; s.wanted(e) {
				return e, nil
			}
		}
		if s.unstored {
			s.done = true // the part may grow, and the next look continues in it
			break
		}
		s.part, s.offset, s.held = s.part+1, 0, nil
	}
	return nil, nil
}

// lookAgain makes the next head look for events that are newer than what has been read.
func (s *eventSource) lookAgain() {
	if s.done {
		s.done = false
	}
}

// at returns when the head counts as having happened. The order of a workflow is the truth, whatever the clocks say.
func (s *eventSource) at(head *v1.Event) time.Time { return later(head.GetAt().AsTime(), s.newest) }

// advance moves to the event after the head.
func (s *eventSource) advance(head *v1.Event) {
	s.newest = s.at(head)
	if _, _, number, ok := names.ParseEventID(head.GetId()); ok {
		s.last = number
	}
	s.offset++
}

// hasBegun reports whether something of the source has been read.
func (s *eventSource) hasBegun() bool { return s.done || s.part > 0 || s.offset > 0 }
