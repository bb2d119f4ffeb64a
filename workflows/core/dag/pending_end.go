package dag

import (
	"cmp"

	v1 "switchyard/proto/switchyard/v1"
)

// CancelTask cancels one task with all its instances, or one instance, in any state before its end. A dispatched attempt is
// stopped first, and the task is then cancelled unless it completes. In a cancelled run CancelTask has no effect.
type CancelTask struct {
	Task   int
	Reason string // for people; becomes the Error of the Record
}

// Kill is like CancelTask, but the end is visible as a person's act: unless the task completes, it ends as killed, for reason
// "killed", which is a failure.
type Kill struct {
	Task   int
	Reason string // for people; becomes the Error of the Record
}

// Expire reports that the deadline of a task or instance has passed. It fails for reason "deadline" and is not retried. A
// dispatched attempt is stopped first.
type Expire struct {
	Task  int
	Error string
}

func (e CancelTask) apply(s *State) {
	if s.records.has(e.Task) && !s.ends.isCancelled(e.Task) {
		s.ends.setPendingEnd(e.Task, Failure{State: v1.TaskCancelled, Reason: v1.ReasonTaskCancelled, Error: e.Reason})
	}
}

func (e Kill) apply(s *State) {
	if s.records.has(e.Task) && !s.ends.isCancelled(e.Task) {
		s.ends.setPendingEnd(e.Task, Failure{State: v1.TaskKilled, Reason: v1.ReasonKilled, Error: e.Reason})
	}
}

func (e Expire) apply(s *State) {
	if s.records.has(e.Task) && !s.ends.isCancelled(e.Task) {
		s.ends.setPendingEnd(e.Task, Failure{State: v1.TaskFailed, Reason: v1.ReasonDeadline, Error: e.Error})
	}
}

// KillReason returns why task i is being killed, or "" if it is not.
func (s *State) KillReason(i int) string {
	if rec := s.Task(i); rec.PendingEnd && rec.Failure.State == v1.TaskKilled {
		return cmp.Or(rec.Failure.Error, v1.ReasonKilled)
	}
	return ""
}

// EndReason returns in one line why a dispatched task is to end, or why its run is. It may be empty.
func (s *State) EndReason(i int) string {
	if rec := s.Task(i); rec.PendingEnd {
		return rec.Failure.Error
	}
	return s.ends.phaseOf(i).aborted.Error
}
