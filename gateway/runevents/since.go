package runevents

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Since selects those events of a tail that happened at a time or later. The run learns of the start of an attempt with its
// end, so that starts are selected with the event that follows them.
type Since struct {
	from  time.Time
	begun map[string]bool        // parts with at least one selected event
	held  map[string][]*v1.Event // starts by part, kept back until the event after them arrives
}

// NewSince returns a selection for the events of one run.
func NewSince(from time.Time) *Since {
	return &Since{from: from, begun: map[string]bool{}, held: map[string][]*v1.Event{}}
}

// Select returns the events that are selected because of e, which comes after all that it was called with before.
func (s *Since) Select(e *v1.Event) []*v1.Event {
	_, part, _, _ := names.ParseEventID(e.GetId())
	switch {
	case s.begun[part]:
		return []*v1.Event{e}
	case !e.GetAt().AsTime().Before(s.from):
		selected := append(s.held[part], e)
		s.begun[part] = true
		delete(s.held, part)
		return selected
	case e.GetEvent() == v1.EventStarted:
		s.held[part] = append(s.held[part], e)
	case e.GetEvent() == v1.EventTurn || e.GetEvent() == v1.EventToolCall: // between the start of an attempt and its end
	default:
		delete(s.held, part)
	}
	return nil
}
