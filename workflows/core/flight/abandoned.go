package flight

import (
	"fmt"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// A generation that follows one closed from outside starts nothing until the attempts in flight at that time have ended on
// their nodes, or their leases have expired. Results that such attempts still produce answer the next attempts.

// Abandoned returns the attempts of the previous generation that may still run.
func (s *State) Abandoned() []*historyv1.AwaitAnswerRequest { return slices.Clone(s.abandoned) }

// HasAbandoned reports whether any attempt of the previous generation may still run.
func (s *State) HasAbandoned() bool { return len(s.abandoned) > 0 }

// AbandonedEnded reports that an attempt of the previous generation runs no more.
func (s *State) AbandonedEnded(a *historyv1.AwaitAnswerRequest) []Effect {
	s.abandoned = slices.DeleteFunc(s.abandoned, func(other *historyv1.AwaitAnswerRequest) bool { return other == a })
	s.do(Wake{})
	return s.take()
}

// abandonedWait returns what nothing may start before, while any attempt of the previous generation may run.
func (s *State) abandonedWait() string {
	oldest := s.abandoned[0].GetAttempt()
	text := fmt.Sprintf("waits for the old attempt of %s on %s to end", UnitName(oldest), oldest.GetNode())
	if more := len(s.abandoned) - 1; more > 0 {
		text += fmt.Sprintf(", and for %d more", more)
	}
	return text
}

// UnitName returns the name of an attempt's task or instance, or of the first instance of its batch.
func UnitName(req *historyv1.ExecuteRequest) string {
	if req.Index == nil {
		return req.GetTask()
	}
	return names.InstanceName(req.GetTask(), int(req.GetIndex()))
}
