package dag

import v1 "switchyard/proto/switchyard/v1"

// CancelTask cancels one task, with all its instances, or one instance, in any
// state before its end. What a node has is stopped first, and is cancelled then
// unless it completes. In a run that is cancelled it comes too late.
type CancelTask struct {
	Task   int
	Reason string // for people; becomes the Error of the Record
}

// Kill is CancelTask by a person who wants it seen that the task was ended: what does
// not complete ends as killed, for reason "killed", which is a failure.
type Kill struct {
	Task   int
	Reason string // for people; becomes the Error of the Record
}

// Expire says that the deadline of a task or instance is over: it has failed, for
// reason "deadline", and is not tried again. What a node has is stopped first.
type Expire struct {
	Task  int
	Error string
}

// Abort ends the run before it has come to its end, like Cancel, but the run ends
// as it says.
type Abort struct {
	State  string // failed, cancelled or rejected
	Reason string // a word, such as "deadline"
	Error  string // one line for people; tasks that are cancelled with the run have it too
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

// setPendingEnd ends what has not ended in a certain way: what waits at once, and what a
// node has when it has been stopped.
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

// withdraw takes the request for a node back, if there is one.
func (s *State) withdraw(i int) {
	if s.isRequested(i) {
		s.round.withdraw = append(s.round.withdraw, i)
	}
}
