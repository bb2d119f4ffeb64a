package flight

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// StartDeadline starts the deadline of a task that could start, if it has one. Further calls are no-ops.
func (s *State) StartDeadline(i int, now time.Time) []Effect {
	limit := definition.Deadline(s.core.Definition(i))
	if s.core.Group(i) >= 0 || limit <= 0 || s.due[i] {
		return nil
	}
	r := s.records.At(i)
	if r.ReadyAt.IsZero() {
		r.ReadyAt = now
	}
	s.due[i] = true
	left := max(r.ReadyAt.Add(limit).Sub(now), time.Millisecond)
	return []Effect{StartTimer{left, "deadline of " + s.core.Name(i), Timer{kind: deadlineTimer, task: i}}}
}

// StopDeadline stops the deadline of a task that has ended.
func (s *State) StopDeadline(i int) []Effect {
	if !s.due[i] || !v1.IsTaskTerminal(s.core.Task(i).State) {
		return nil
	}
	delete(s.due, i)
	return []Effect{StopTimer{Timer{kind: deadlineTimer, task: i}}}
}

// StartRunDeadline starts the deadline of the run, which began at a time, if it has one.
func (s *State) StartRunDeadline(began, now time.Time) []Effect {
	limit := definition.RunDeadline(s.Input.GetDefinition())
	if limit <= 0 || s.Input.GetPartition() != nil {
		return nil
	}
	if s.runDue.IsZero() {
		s.runDue = began.Add(limit)
	}
	return []Effect{After{max(s.runDue.Sub(now), time.Millisecond), "deadline of the run", Timer{kind: runTimer}}}
}

// saveDeadline hands the deadline of the run over to the next execution.
func (s *State) saveDeadline(c *historyv1.RunState) {
	if !s.runDue.IsZero() {
		c.DeadlineAt = timestamppb.New(s.runDue)
	}
}
