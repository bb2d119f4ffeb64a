package dag

import (
	"cmp"

	v1 "switchyard/proto/switchyard/v1"
)

// An Event is something that has happened to a run. An event that does not fit the state (late, duplicate, of an older claim,
// of an unknown task) is ignored.
type Event interface {
	// apply changes the state. State.settle then derives the consequences for other tasks.
	apply(s *State)
}

// Evaluated is the answer to Decisions.Evaluate.
type Evaluated struct {
	Task  int
	Value bool
	// Because explains to people why a condition is false.
	Because string
	// Err is why there is no value. If it is set, the task fails without a retry.
	Err string
	// Broken is set if the system is at fault and not the condition.
	Broken bool
}

// Placed reports that a node was found for a claim and that the attempt is dispatched.
type Placed struct {
	Task  int
	Claim int32
	Node  string
}

// Running reports that the attempt's process has started. It is optional.
type Running struct {
	Task  int
	Claim int32
}

// GaveUp reports that placement has found no node and has stopped looking.
type GaveUp struct {
	Task  int
	Claim int32
	// Reason is why the task fails; if empty, its placement time-out.
	Reason string
	Error  string
}

// Ended reports how a dispatched attempt ended.
type Ended struct {
	Task  int
	Claim int32
	// State is completed, stopped, failed, killed_oom, lost, killed, rejected, cancelled or moved. Any other word counts as
	// failed.
	State    string
	Reason   string
	Error    string
	Node     string // node that ran it; if empty, the node where it was placed
	ExitCode int32  // -1 if nothing ran
	NoRetry  bool   // a retry would only fail again
}

// BackoffOver reports that the delay of a Backoff has passed. Claim is that of the failed attempt.
type BackoffOver struct {
	Task  int
	Claim int32
}

// Reused reports that the result of an earlier run answers the request for a node: the task completes without a dispatch.
type Reused struct {
	Task     int
	Claim    int32
	ExitCode int32
}

// Retry requeues a dead letter by hand, in a run that is not over; see State.MayRetry.
type Retry struct {
	Task int
}

// Cancel cancels the run.
type Cancel struct {
	Error string // one line for people, copied to the run and to the tasks cancelled with it; may be empty
}

func (e Evaluated) apply(s *State) {
	switch {
	case !s.has(e.Task) || !s.isAsked(e.Task, condition):
	case e.Broken:
		s.fail(e.Task, v1.ReasonSystem, e.Err)
	case e.Err != "":
		s.fail(e.Task, v1.ReasonConditionError, e.Err)
	case e.Value:
		s.begin(e.Task)
	default:
		s.skip(e.Task, v1.ReasonCondition, e.Because)
	}
}

func (e Placed) apply(s *State) {
	if !s.requested(e.Task, e.Claim) {
		return
	}
	rec := s.tasks[e.Task]
	rec.State, rec.Node = v1.TaskAssigned, e.Node
	rec.Reason, rec.Error = "", ""
	s.set(e.Task, rec)
}

func (e Running) apply(s *State) {
	if s.dispatched(e.Task, e.Claim) {
		rec := s.tasks[e.Task]
		rec.State = v1.TaskRunning
		s.set(e.Task, rec)
	}
}

func (e GaveUp) apply(s *State) {
	if s.requested(e.Task, e.Claim) {
		rec := s.tasks[e.Task]
		rec.State, rec.Reason, rec.Error = v1.TaskFailed, cmp.Or(e.Reason, v1.ReasonPlacementTimeout), e.Error
		s.finish(e.Task, rec)
	}
}

func (e Reused) apply(s *State) {
	if s.requested(e.Task, e.Claim) {
		rec := s.tasks[e.Task]
		rec.State, rec.Reason, rec.Error = v1.TaskCompleted, "", ""
		rec.ExitCode = e.ExitCode
		s.finish(e.Task, rec)
	}
}

func (e Ended) apply(s *State) {
	if !s.dispatched(e.Task, e.Claim) {
		return
	}
	rec := s.tasks[e.Task]
	rec.Reason, rec.Error = e.Reason, e.Error
	remote := s.isPartitioned(e.Task)
	if e.State == v1.AttemptMoved && !s.cancelled && !rec.PendingEnd && !remote {
		if s.mayStart(e.Task) {
			s.enqueue(e.Task, rec)
		} else {
			s.abandon(e.Task)
		}
		return
	}
	rec.ExitCode, rec.Node = e.ExitCode, cmp.Or(e.Node, rec.Node)
	rec.State = endState(e.State)
	switch {
	case rec.State == v1.TaskCompleted:
	case rec.PendingEnd:
		rec.State, rec.Reason, rec.Error = rec.Failure.State, rec.Failure.Reason, rec.Failure.Error
	case s.cancelled:
		rec.State, rec.Reason, rec.Error = v1.TaskCancelled, v1.ReasonRunCancelled, cmp.Or(s.aborted.Error, rec.Error)
	case remote && e.State == v1.TaskSkipped:
		rec.State = v1.TaskSkipped
	}
	if v1.IsRetryableEnd(rec.State) && !e.NoRetry && !rec.PendingEnd && !remote {
		s.repeat(e.Task, rec)
	} else {
		s.finish(e.Task, rec)
	}
}

func (e BackoffOver) apply(s *State) {
	if s.has(e.Task) && s.tasks[e.Task].Backoff && s.tasks[e.Task].Claim == e.Claim {
		s.enqueue(e.Task, s.tasks[e.Task])
	}
}

func (e Retry) apply(s *State) {
	if s.MayRetry(e.Task) == nil {
		s.retry(e.Task)
	}
}

func (e Cancel) apply(s *State) {
	if !s.cancelled {
		s.cancelled, s.aborted.Error = true, e.Error
		s.cancelAll()
	}
}
