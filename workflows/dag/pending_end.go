package dag

import v1 "switchyard/proto/switchyard/v1"

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

// Abort ends the run early, like Cancel, but with its own state and reason.
type Abort struct {
	State  string // failed, cancelled or rejected
	Reason string // a word, such as "deadline"
	Error  string // one line for people, copied to the tasks cancelled with the run
}

func (e CancelTask) apply(s *State) {
	if s.has(e.Task) && !s.cancelled {
		s.setPendingEnd(e.Task, Failure{State: v1.TaskCancelled, Reason: v1.ReasonTaskCancelled, Error: e.Reason})
	}
}

func (e Kill) apply(s *State) {
	if s.has(e.Task) && !s.cancelled {
		s.setPendingEnd(e.Task, Failure{State: v1.TaskKilled, Reason: v1.ReasonKilled, Error: e.Reason})
	}
}

func (e Expire) apply(s *State) {
	if s.has(e.Task) && !s.cancelled {
		s.setPendingEnd(e.Task, Failure{State: v1.TaskFailed, Reason: v1.ReasonDeadline, Error: e.Error})
	}
}

func (e Abort) apply(s *State) {
	if !s.cancelled {
		s.cancelled, s.aborted = true, e
		s.cancelAll()
	}
}

// setPendingEnd gives a task or instance a certain end: at once if it is waiting, or after it has been stopped if it is
// dispatched.
func (s *State) setPendingEnd(i int, end Failure) {
	rec := s.tasks[i]
	if v1.IsTaskTerminal(rec.State) || rec.PendingEnd {
		return
	}
	g := s.instances(i)
	switch {
	case g != nil:
		rec.PendingEnd, rec.Failure = true, end
		s.set(i, rec)
		for k, first, count := 0, g.first, g.count; k < count; k++ {
			s.setPendingEnd(first+k, end)
		}
	case s.isDispatched(i):
		rec.PendingEnd, rec.Failure = true, end
		s.set(i, rec)
		s.round.stop = append(s.round.stop, i)
	default:
		s.withdraw(i)
		rec.State, rec.Reason, rec.Error = end.State, end.Reason, end.Error
		s.finish(i, rec)
	}
}

// withdraw withdraws the request for a node, if there is one.
func (s *State) withdraw(i int) {
	if s.isRequested(i) {
		s.round.withdraw = append(s.round.withdraw, i)
	}
}
