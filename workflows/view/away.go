package view

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// away returns why task i is lost until its node is back, or "" if it is not lost.
func (s *shown) away(i int) string {
	if m := s.entries[i].extras; m != nil && v1.IsTaskDispatched(s.entries[i].state) {
		return m.away
	}
	return ""
}

// SetAway shows long-lived task i as lost until its node is back.
func (s *shown) SetAway(i int, why string, now time.Time) {
	e := &s.entries[i]
	s.extrasOf(i).away, e.completedAt = why, timestamppb.New(now)
	s.recount(i)
	s.log.Add(now, v1.EventLost, i, e.node, e.attempt, e.claim, why)
	s.Touch(i)
}

// SetBack shows that the node of task i is back and still has the task's attempt.
func (s *shown) SetBack(i int, now time.Time) {
	if s.endAway(i) {
		e := &s.entries[i]
		s.log.Add(now, v1.EventFound, i, e.node, e.attempt, e.claim, "")
	}
}

// endAway clears the away state of task i, and reports whether it was away.
func (s *shown) endAway(i int) bool {
	if s.away(i) == "" {
		return false
	}
	s.entries[i].extras.away, s.entries[i].completedAt = "", nil
	s.recount(i)
	s.Touch(i)
	return true
}
