package dag

import (
	"cmp"

	v1 "switchyard/proto/switchyard/v1"
)

// An Event is something that has happened to a run. An event that does not fit the state (late, duplicate, of an older claim,
// of an unknown task) is ignored.
type Event interface {
	// apply changes the state. The consequences for other tasks are derived afterwards.
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

// GaveUp reports that a task gets no node, or no lock, and waits no longer.
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

// Cancel cancels the tasks of the run. `finally` runs regardless, unless the run has not begun.
type Cancel struct {
	Error string // one line for people, copied to the run and to the tasks cancelled with it; may be empty
	Now   bool   // `finally` is cancelled, too
}

// Abort ends the tasks of the run early, like Cancel, but with its own state and reason.
type Abort struct {
	State  string // failed, cancelled or rejected
	Reason string // a word, such as "deadline"
	Error  string // one line for people, copied to the tasks cancelled with the run
}

func (e Evaluated) apply(s *State) {
	switch {
	case !s.records.has(e.Task) || !s.ready.isAsked(e.Task, condition):
	case e.Broken:
		s.ends.fail(e.Task, v1.ReasonSystem, e.Err)
	case e.Err != "":
		s.ends.fail(e.Task, v1.ReasonConditionError, e.Err)
	case e.Value:
		s.starts.begin(e.Task)
	default:
		s.ends.skip(e.Task, v1.ReasonCondition, e.Because)
	}
}

func (e Placed) apply(s *State) {
	if !s.records.isRequestedAs(e.Task, e.Claim) {
		return
	}
	rec := s.records.tasks[e.Task]
	rec.State, rec.Node = v1.TaskAssigned, e.Node
	rec.Reason, rec.Error = "", ""
	s.records.set(e.Task, rec)
}

func (e Running) apply(s *State) {
	if s.records.isDispatchedAs(e.Task, e.Claim) {
		rec := s.records.tasks[e.Task]
		rec.State = v1.TaskRunning
		s.records.set(e.Task, rec)
	}
}

func (e GaveUp) apply(s *State) {
	if s.records.isRequestedAs(e.Task, e.Claim) {
		rec := s.records.tasks[e.Task]
		rec.State, rec.Reason, rec.Error = v1.TaskFailed, cmp.Or(e.Reason, v1.ReasonPlacementTimeout), e.Error
		rec.Final = v1.IsFinalReason(rec.Reason)
		s.ends.finish(e.Task, rec)
	}
}

func (e Reused) apply(s *State) {
	if s.records.isRequestedAs(e.Task, e.Claim) {
		rec := s.records.tasks[e.Task]
		rec.State, rec.Reason, rec.Error = v1.TaskCompleted, "", ""
		rec.ExitCode = e.ExitCode
		s.ends.finish(e.Task, rec)
	}
}

func (e Ended) apply(s *State) {
	if s.records.isDispatchedAs(e.Task, e.Claim) {
		s.retries.attemptEnded(e)
	}
}

func (e BackoffOver) apply(s *State) {
	if s.records.has(e.Task) && s.records.tasks[e.Task].Backoff && s.records.tasks[e.Task].Claim == e.Claim {
		s.ready.enqueue(e.Task, s.records.tasks[e.Task])
	}
}

func (e Retry) apply(s *State) {
	if s.retries.mayRetry(e.Task) == nil {
		s.retries.retry(e.Task)
	}
}

func (e Cancel) apply(s *State) {
	s.ends.cancel(Abort{Error: e.Error}, e.Now)
}

func (e Abort) apply(s *State) {
	s.ends.cancel(e, false)
}

// Expanded is the answer to Decisions.Expand. Count instances, numbered From, From+1, ..., are appended to the state, and each
// requests a node.
type Expanded struct {
	Task, From, Count int
	// Partitioned is set if other workflows run the instances. No records are appended, and the task is running, under a new
	// claim, until an Ended reports its end. Decisions.Stop stops it and Decisions.Halt halts it.
	Partitioned bool
	// Err is why the number is unknown. If it is set, the task fails without a retry.
	Err string
	// Broken is set if the system is at fault and not the expression.
	Broken bool
}

func (e Expanded) apply(s *State) {
	if !s.records.has(e.Task) || !s.ready.isAsked(e.Task, expansion) {
		return
	}
	switch {
	case e.Broken:
		s.ends.fail(e.Task, v1.ReasonSystem, e.Err)
	case e.Err != "":
		s.ends.fail(e.Task, v1.ReasonFanOut, e.Err)
	case e.Count <= 0:
		rec := s.records.tasks[e.Task]
		rec.State, rec.Reason, rec.Error, rec.ExitCode = v1.TaskCompleted, "", "", 0
		s.ends.finish(e.Task, rec)
	case e.Partitioned:
		s.ready.answered(e.Task)
		s.fanOuts.partition(e.Task, e.From, e.Count)
	default:
		s.ready.answered(e.Task)
		s.fanOuts.expand(e.Task, e.From, e.Count)
	}
}
