package flight

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// Attempt holds the facts about an attempt that decide, together with its answer, how it ends.
type Attempt struct {
	Place
	Members []Member
	Remote  bool // it runs outside its node, for example in a cluster, where another node can find it
	Lasting bool // it does not end with its activity
	// WasDetached reports whether it has run without an activity.
	WasDetached bool
	// Excuse is why its lease was lost although its node lives, or "".
	Excuse string
}

// Place is where an attempt was sent, and what it was given there.
type Place struct {
	Node     string
	GPUs     []int32
	NUMANode *int32
}

// Member is a task or an instance of an attempt.
type Member struct {
	Task    int
	Claim   int32
	Attempt int32 // number of the attempt
	Number  int32 // number of the instance in its task
	Running bool  // whether the core knows that it runs
	Stopped bool  // whether it was to be stopped
	// Retryable reports whether the task may be retried at all.
	Retryable bool
	// LostLeases is how many leases it has lost on live nodes since an attempt of it ended in another way.
	LostLeases int32
}

// End is how a dispatch of a member has ended.
type End struct {
	Place
	Ended          dag.Ended // as the core receives it; its Task and Claim are those of the member
	Attempt        int32     // number of the attempt
	Response       *historyv1.ExecuteResponse
	Outcome        string // what the end implies about the node, one of v1.Outcome..., or "" if nothing
	Unacknowledged bool   // it is unknown whether and how the attempt ended
	Continues      bool   // it runs outside the nodes, and continues there if it was moved
	// Checkpoint is what the attempt left in the file $SWITCHYARD_CHECKPOINT, or nil if nothing new.
	Checkpoint *historyv1.Checkpoint
}

// IsSuspect reports whether a node has taken the dispatch and not started it, or not taken it at all.
func (e End) IsSuspect() bool {
	return e.Ended.State == v1.AttemptMoved && (e.Ended.Reason == v1.ReasonNotStarted || e.Ended.Reason == v1.ReasonNotPickedUp)
}

// NothingRan is the result of a task that has not run at all. EmptyResult is the result of a completed task without any output.
// Neither is ever modified.
var (
	NothingRan  = &v1.TaskResult{ExitCode: -1, Output: &structpb.Struct{}}
	EmptyResult = &v1.TaskResult{Output: &structpb.Struct{}}
)

// NewEnd returns the end of a dispatch of a member, with no result yet.
func NewEnd(at Place, m Member) End {
	return End{
		Place: at, Attempt: m.Attempt, Response: &historyv1.ExecuteResponse{},
		Ended: dag.Ended{Task: m.Task, Claim: m.Claim, ExitCode: -1},
	}
}

// End returns the ends of the members of an attempt in their order, and what they imply about its node.
func (a Attempt) End(answer Answer) (ends []End, outcome string) {
	if len(a.Members) == 1 {
		end := NewEnd(a.Place, a.Members[0])
		if answer.Kind == Answered {
			end.answered(answer.Response)
		} else {
			end.unanswered(answer)
		}
		ends, outcome = []End{end}, end.Outcome
	} else {
		ends, outcome = a.endBatch(answer)
	}
	switch {
	case a.Remote:
		outcome = a.continueElsewhere(ends, outcome)
	case a.Lasting:
		for k := range ends { // its node has moved it only if it has not started
			ends[k].Ended.NoRetry = true
		}
	case answer.Kind != Answered || answer.Response.GetStartedAt() != nil:
		outcome = a.judgeLostLease(ends, outcome)
	}
	return ends, outcome
}

// answered sets the end of a dispatch from the answer of its node.
func (e *End) answered(res *historyv1.ExecuteResponse) {
	e.Response, e.Checkpoint = res, res.GetCheckpoint()
	e.Ended.State, e.Ended.Reason, e.Ended.Error = res.GetState(), res.GetReason(), res.GetError()
	e.Ended.Node = res.GetNode()
	e.Ended.NoRetry = v1.IsFinalReason(e.Ended.Reason) || e.Ended.Reason == v1.ReasonWorkspace
	e.Outcome = outcomeOf(e.Ended.State, e.Ended.Reason)
	e.Unacknowledged = isUnacknowledged(res)
	e.Ended.ExitCode = cmp.Or(res.GetResult(), NothingRan).GetExitCode()
}

// unanswered sets the end of a dispatch whose node has not answered. The task itself has neither succeeded nor failed.
func (e *End) unanswered(answer Answer) {
	set := func(outcome, state, reason, text string) {
		e.Outcome, e.Ended.State, e.Ended.Reason, e.Ended.Error = outcome, state, reason, text
	}
	e.Unacknowledged = answer.TimedOut()
	switch answer.Kind {
	case NotPickedUp:
		set(v1.OutcomeSuspect, v1.AttemptMoved, v1.ReasonNotPickedUp, "the node did not pick up the task")
	case Silent:
		e.Checkpoint = answer.Beat.GetCheckpoint()
		if !answer.Beat.GetSpawned() {
			set(v1.OutcomeSuspect, v1.AttemptMoved, v1.ReasonNotStarted, "the node accepted the task and went silent before starting it")
			return
		}
		set(v1.OutcomeLost, v1.TaskLost, v1.ReasonNodeLost, "the node was lost while the task ran")
		e.Response.StartedAt = answer.Beat.GetStartedAt()
	case Overdue:
		set(v1.OutcomeSystem, v1.TaskFailed, v1.ReasonTimeout, "the node did not end the task in time")
	case Cancelled:
		set("", v1.TaskCancelled, v1.ReasonCancelled, "")
		e.Ended.NoRetry = true
	case Broken:
		set(v1.OutcomeSystem, v1.TaskFailed, v1.ReasonSystem, answer.Text)
		e.Ended.NoRetry = answer.Final
	default:
		set("", v1.TaskFailed, v1.ReasonPayload, answer.Text)
		e.Ended.NoRetry = true
	}
}

// outcomeOf returns what an answer implies about the node.
func outcomeOf(state, reason string) string {
	switch {
	case state == v1.TaskCancelled:
		return ""
	case isCutShort(state, reason):
		return v1.OutcomeLost
	case state != v1.AttemptMoved:
		return v1.OutcomeDone
	}
	switch reason {
	case v1.ReasonNoRoom, v1.ReasonDraining, v1.ReasonIncarnation, v1.ReasonNoExecutor:
		// Placement had not received this state yet and would choose the node again and again.
		return v1.OutcomeRefused
	case v1.ReasonNotStarted:
		return v1.OutcomeSuspect
	}
	return v1.OutcomeMoved
}

// isCutShort reports whether an attempt that ended in this state, for this reason, may have done its work unnoticed. An evicted
// attempt cannot have: its end is known.
func isCutShort(state, reason string) bool { return state == v1.TaskLost && reason != v1.ReasonEvicted }

// isUnacknowledged reports whether an attempt may have completed although its answer does not state that.
func isUnacknowledged(res *historyv1.ExecuteResponse) bool {
	return isCutShort(res.GetState(), res.GetReason()) || res.GetState() == v1.AttemptMoved && res.GetReason() == v1.ReasonLeaseLost
}

// AddUnknownOutcome extends the error of a lost attempt that is not retried: its outcome is unknown.
func AddUnknownOutcome(ended *dag.Ended) {
	if isCutShort(ended.State, ended.Reason) {
		ended.Error += "; it may have done its work, but it recorded no result, and it is not retried"
	}
}

// maxLostLeases is how many times in a row an attempt may lose its lease on a live node without using up a retry. Beyond it, a
// network that keeps failing uses up the retries.
const maxLostLeases = 3

// judgeLostLease decides the fate of the member of a started attempt that ended because its lease was lost. A retryable task is
// placed again without counting an attempt. Any other task is lost, because its attempt may have done its work. judgeLostLease
// returns what the end implies about the node.
func (a Attempt) judgeLostLease(ends []End, outcome string) string {
	for k, m := range a.Members {
		end := &ends[k]
		e := &end.Ended
		isMoved := e.State == v1.AttemptMoved && e.Reason == v1.ReasonLeaseLost
		isExcused := a.Excuse != "" && e.State == v1.TaskLost && e.Reason == v1.ReasonNodeLost
		if !isMoved && !isExcused || m.Stopped {
			continue
		}
		e.State, e.Reason, e.Error = v1.AttemptMoved, v1.ReasonLeaseLost, cmp.Or(a.Excuse, e.Error)
		switch {
		case !m.Retryable:
			e.State = v1.TaskLost
		case m.LostLeases >= maxLostLeases:
			e.State = v1.TaskLost
			e.Error += fmt.Sprintf("; %d times in a row count as an attempt", maxLostLeases)
		}
		if a.Excuse != "" {
			end.Outcome = v1.OutcomeMoved
			return v1.OutcomeMoved
		}
		return outcome // no later member of the batch had started
	}
	return outcome
}

// continueElsewhere moves a remote attempt to another node if it was lost with its node or its node has released it: the attempt
// is placed again under the same number, as often as needed, whether or not the task is retryable. continueElsewhere returns
// what the end implies about the node.
func (a Attempt) continueElsewhere(ends []End, outcome string) string {
	for k, m := range a.Members {
		end := &ends[k]
		e := &end.Ended
		switch {
		case e.State == v1.TaskLost && e.Reason == v1.ReasonNodeLost && !m.Stopped:
			e.State, e.NoRetry = v1.AttemptMoved, false
			end.Continues = !a.WasDetached || m.Running
			if a.Excuse != "" {
				e.Reason, e.Error = v1.ReasonLeaseLost, a.Excuse
				end.Outcome, outcome = v1.OutcomeMoved, v1.OutcomeMoved
			}
		case e.State == v1.AttemptMoved:
			end.Continues = end.Response.GetStartedAt() != nil
		}
	}
	return outcome
}

// endBatch returns the ends of a batch. A member with a known end gets that end. The first of the others is the one that was
// running; it ends like the dispatch if the dispatch failed. Members that were not reached are placed again.
func (a Attempt) endBatch(answer Answer) (ends []End, outcome string) {
	var whole End
	res := answer.Response
	if answer.Kind != Answered {
		whole.Response = &historyv1.ExecuteResponse{}
		whole.unanswered(answer)
		res = answer.Progress
	} else {
		whole.Outcome, whole.Unacknowledged = outcomeOf(res.GetState(), res.GetReason()), isUnacknowledged(res)
	}
	isLost := answer.Kind == Answered && res.GetState() == v1.TaskLost
	if isLost { // as if no answer had come
		whole.Ended.State, whole.Ended.Reason, whole.Ended.Error = res.GetState(), res.GetReason(), res.GetError()
	}
	answers := make(map[int32]*historyv1.ExecuteResponse, len(a.Members))
	addAnswers(answers, res)
	addAnswers(answers, answer.Response)
	isRunning := (answer.Kind != Answered || isLost) && whole.Ended.State != v1.AttemptMoved
	for _, m := range a.Members {
		end := NewEnd(a.Place, m)
		own := answers[m.Number]
		switch {
		case own != nil && (own.GetState() != v1.TaskCancelled || m.Stopped):
			end.answered(own)
		case own != nil: // it was stopped together with another member
			end.Ended.State, end.Ended.Reason, end.Checkpoint = v1.AttemptMoved, v1.ReasonBatch, own.GetCheckpoint()
		case isRunning && (whole.Ended.State != v1.TaskCancelled || m.Stopped):
			end.Ended.State, end.Ended.Reason, end.Ended.Error = whole.Ended.State, whole.Ended.Reason, whole.Ended.Error
			end.Ended.NoRetry, end.Unacknowledged, end.Outcome = whole.Ended.NoRetry, whole.Unacknowledged, whole.Outcome
			end.Checkpoint = res.GetCheckpoint()
			isRunning = whole.Ended.State == v1.TaskCancelled || whole.Ended.Reason == v1.ReasonPayload
		default:
			end.Ended.State, end.Unacknowledged, end.Outcome = v1.AttemptMoved, whole.Unacknowledged, v1.OutcomeMoved
			end.Ended.Reason = cmp.Or(whole.Ended.Reason, res.GetReason(), v1.ReasonBatch)
			end.Ended.Error = cmp.Or(whole.Ended.Error, res.GetError())
			if whole.Outcome == v1.OutcomeRefused {
				end.Outcome = v1.OutcomeRefused
			}
		}
		ends = append(ends, end)
	}
	return ends, whole.Outcome
}

// addAnswers adds the answers to the members of a batch, keyed by member number.
func addAnswers(to map[int32]*historyv1.ExecuteResponse, res *historyv1.ExecuteResponse) {
	for _, result := range res.GetBatch() {
		to[result.GetIndex()] = memberAnswer(res, result)
	}
}

// memberAnswer returns the answer to one member of a batch as if the member had run alone. Store.MemberAnswer does the same for
// readers of records.
func memberAnswer(res *historyv1.ExecuteResponse, m *historyv1.MemberResult) *historyv1.ExecuteResponse {
	one := &historyv1.ExecuteResponse{
		State: cmp.Or(m.GetState(), v1.TaskCompleted), Reason: m.GetReason(), Error: m.GetError(),
		Result: cmp.Or(m.GetResult(), EmptyResult), Record: m.GetRecord(),
		AssignedAt: res.GetAssignedAt(), Node: res.GetNode(), Checkpoint: m.GetCheckpoint(),
	}
	if from := res.GetAssignedAt(); from != nil && m.GetStartedMs() >= 0 {
		started := from.AsTime().Add(time.Duration(m.GetStartedMs()) * time.Millisecond)
		one.StartedAt = timestamppb.New(started)
		one.CompletedAt = timestamppb.New(started.Add(time.Duration(m.GetTookMs()) * time.Millisecond))
	}
	return one
}
