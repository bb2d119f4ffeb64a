package runevents

import (
	"context"
	"time"

	"switchyard/gateway/runview"
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

	part   int32
	offset int
	held   []*v1.Event // of the part; nil: it was not read yet
	done   bool        // there are no more
	newest time.Time   // what has been taken is not later
}

// head returns the next event that is wanted, or nil if there are no more.
func (s *eventSource) head(ctx context.Context, r *Reader) (*v1.Event, error) {
	for !s.done {
		if s.held == nil {
			part, err := r.readPart(ctx, s)
			if err != nil {
				return nil, err
			}
			if part == nil {
				s.done = true
				break
			}
			s.held = part
		}
		if s.offset > len(s.held) {
			// The part was longer when it had not been stored yet.
			s.part, s.offset, s.held = s.part+1, s.offset-len(s.held), nil
			continue
		}
		for ; s.offset < len(s.held); s.offset++ {
			if e := s.held[s.offset]; s.wanted(e) {
				return e, nil
			}
		}
		s.part, s.offset, s.held = s.part+1, 0, nil
	}
	return nil, nil
}

// at returns when the head counts as having happened. The order of a workflow is the truth, whatever the clocks say.
func (s *eventSource) at(head *v1.Event) time.Time { return later(head.GetAt().AsTime(), s.newest) }

// advance moves to the event after the head.
func (s *eventSource) advance(head *v1.Event) {
	s.newest = s.at(head)
	s.offset++
}

// hasBegun reports whether something of the source has been read.
func (s *eventSource) hasBegun() bool { return s.done || s.part > 0 || s.offset > 0 }

// childSource returns the source of the events of the instances that a child carries through. The events of the task as a
// whole are those of the run.
func childSource(run string, p *v1.PartReport, silent bool, task string) *eventSource {
	id := runview.PartID(run, p)
	return &eventSource{
		id: id, home: id, generation: p.GetGeneration(),
		live: !p.GetOver(), silent: silent,
		wanted: func(e *v1.Event) bool {
			_, _, ok := names.ParseInstanceName(e.GetTask())
			return ok && (task == "" || concerns(e, task))
		},
	}
}
