package runevents

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Since selects the events of a tail that happened at or after a given time. The run learns of the start of an attempt only
// at its end, so a start is selected together with the event that follows it.
type Since struct {
	from  time.Time
	begun map[string]bool        // parts with at least one selected event
	held  map[string][]*v1.Event // starts by part, kept back until the event after them arrives
}

// NewSince returns a selection for the events of one run.
func NewSince(from time.Time) *Since {
	return &Since{from: from, begun: map[string]bool{}, held: map[string][]*v1.Event{}}
}

// Select returns the events to emit after reading e: e itself, the starts held back for it, or nothing. Events must be
// passed in order.
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
	case e.GetEvent() == v1.EventTurn || e.GetEvent() == v1.EventToolCall: // events between the start and the end of an attempt
	default:
		delete(s.held, part)
	}
	return nil
}
