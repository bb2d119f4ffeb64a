package view

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// notice returns what delays the attempt of task i, or "" if nothing is known to.
func (s *shown) notice(i int) string {
	if m := s.entries[i].extras; m != nil && s.entries[i].state == v1.TaskAssigned {
		return m.silent
	}
	return ""
}

// SetSilent shows that the node of task i has gone silent. started is when the task's process started. The task counts as
// running until its fate is known.
func (s *shown) SetSilent(i int, notice string, started *timestamppb.Timestamp, now time.Time) {
	e := &s.entries[i]
	s.extrasOf(i).silent, e.startedAt = notice, started
	s.recount(i)
	s.log.Add(now, v1.EventSilent, i, e.node, e.attempt, e.claim, notice)
	s.Touch(i)
}

// EndSilence shows that the fate of task i is known, whose node may have been silent or away.
func (s *shown) EndSilence(i int) {
	if s.notice(i) != "" {
		s.entries[i].extras.silent, s.entries[i].startedAt = "", nil
		s.recount(i)
		s.Touch(i)
	}
	s.endAway(i)
}
