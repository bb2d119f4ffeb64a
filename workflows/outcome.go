package workflows

import (
	"cmp"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

// What a dispatch says of its node: ClaimRef.outcome.
const (
	outcomeRefused = "refused" // it takes nothing of the kind now: to be left out until it is heard of again
	outcomeSystem  = "system"  // the node was lost, or is at fault
	outcomeMoved   = "moved"   // handed back for another reason
	outcomeDone    = "done"    // it ran
)

// Reasons of a dispatch that was moved.
const (
	reasonNoRoom      = "no_room"
	reasonNotPickedUp = "not_picked_up"
	reasonNotStarted  = "not_started"
	reasonBatch       = "batch"     // the batch that it was in ended without it
	reasonPaused      = "paused"    // its run was paused
	reasonHeld        = "held"      // a person holds it back
	reasonContinued   = "continued" // its run continues as new
)

// Other reasons.
const (
	// reasonExpression: an expression in spec or env failed, and would again.
	reasonExpression = "expression"
	// reasonBadSpec: the spec with its expressions replaced is none that could be run.
	reasonBadSpec = "bad_spec"
	// reasonPayload: what was to be sent, or had come, does not fit.
	reasonPayload = "payload"
	// reasonSuspended: a person has suspended the task.
	reasonSuspended = "suspended"
	// reasonApproval: the task waits for a person.
	reasonApproval = "approval"
)

// dispatchEnd is how a dispatch of a task ended.
type dispatchEnd struct {
	assignment
	number  int32     // of the attempt
	ended   dag.Ended // as the core is told
	res     *v1.ExecuteResponse
	outcome string // what it says of the node; empty: nothing
	unheard bool   // nobody heard how the attempt ended, if it did
	// What the attempt has left in the file $SWITCHYARD_CHECKPOINT; nil: nothing new.
	checkpoint *v1.Checkpoint
}

// attempt is what is kept of a dispatch that has ended.
func (d dispatchEnd) attempt(now time.Time) *v1.Attempt {
	a := &v1.Attempt{
		Attempt: d.number, Claim: d.claim, Node: cmp.Or(d.ended.Node, d.node),
		State: d.ended.State, Reason: d.ended.Reason, Error: d.ended.Error, ExitCode: d.ended.ExitCode,
		AssignedAt: d.res.GetAssignedAt(), StartedAt: d.res.GetStartedAt(), CompletedAt: d.res.GetCompletedAt(),
	}
	if a.CompletedAt == nil {
		a.CompletedAt = timestamppb.New(now)
	}
	return a
}

// landed reads how the members of a dispatch ended from the result of its
// activity, and what that says of the node.
func (r *run) landed(a assignment, members []int, att *attempt, res *v1.ExecuteResponse, err error) (ends []dispatchEnd, outcome string) {
	if len(members) > 1 {
		return r.landedBatch(a, members, att, res, err)
	}
	a.task, a.claim = members[0], r.core.Task(members[0]).Claim
	d := r.newEnd(a)
	if err != nil {
		r.broken(&d, err)
		d.ended.ExitCode = -1
	} else {
		r.take(&d, res)
	}
	return []dispatchEnd{d}, d.outcome
}

// newEnd is the end of a dispatch of which nothing is known yet.
func (r *run) newEnd(a assignment) dispatchEnd {
	return dispatchEnd{
		assignment: a, number: r.core.Task(a.task).Attempt, res: &v1.ExecuteResponse{},
		ended: dag.Ended{Task: a.task, Claim: a.claim, ExitCode: -1},
	}
}

// take takes in what a node says of a dispatch.
func (r *run) take(d *dispatchEnd, res *v1.ExecuteResponse) {
	d.res, d.checkpoint = res, res.GetCheckpoint()
	d.ended.State, d.ended.Reason, d.ended.Error = res.GetState(), res.GetReason(), res.GetError()
	d.ended.Node = res.GetNode()
	d.ended.NoRetry = d.ended.Reason == reasonExpression || d.ended.Reason == reasonBadSpec
	d.outcome = outcomeOf(d.ended.State, d.ended.Reason)
	d.unheard = d.ended.State == dag.StateLost
	if err := r.mergeContext(res.GetContextUpdate()); err != nil {
		d.ended.State, d.ended.Reason, d.ended.Error, d.ended.NoRetry = dag.StateFailed, "context", err.Error(), true
	}
	d.ended.ExitCode = cmp.Or(res.GetResult(), nothingRan).GetExitCode()
}

// endsAsLost reports whether a task may end because its last attempt was lost.
func (r *run) endsAsLost(att *attempt, err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok || len(att.members) > 1 || timeout.TimeoutType() != enumspb.TIMEOUT_TYPE_HEARTBEAT || !lastBeat(timeout).GetSpawned() {
		return false
	}
	i := att.members[0]
	return !r.core.RetriesLeft(i) || r.core.Definition(i).GetRetry().GetWhen() != ""
}

// findResult ends an attempt that was lost with what it has recorded, if it has completed. Where
// retries are left, the next attempt looks for that itself.
func (r *run) findResult(att *attempt, res *v1.ExecuteResponse, err error) {
	i := att.members[0]
	r.must("look for the result of "+r.core.Name(i), names.FindResultActivity, func(found workflow.Future) {
		var record v1.ExecuteResponse
		if found.Get(r.ctx, &record) == nil && record.GetState() == dag.StateCompleted {
			res, err = &record, nil
		}
		r.over(att, res, err)
	}, names.Home(r.id, r.chain), r.in.GetGeneration(), r.core.Name(i), r.core.Task(i).Attempt, r.inlineLimit())
}

// outcomeOf is what the answer of a node says of the node.
func outcomeOf(state, reason string) string {
	switch {
	case state == dag.StateCancelled:
		return ""
	case state == dag.StateLost:
		return outcomeSystem
	case state != dag.StateMoved:
		return outcomeDone
	}
	switch reason {
	case reasonNoRoom, "draining", "incarnation", "no_executor":
		// Placement did not know it yet, and would choose the node again and again.
		return outcomeRefused
	case reasonNotStarted:
		return outcomeSystem
	}
	return outcomeMoved
}

// broken says what became of a dispatch whose activity did not return an answer:
// the task itself has neither succeeded nor failed.
func (r *run) broken(d *dispatchEnd, err error) {
	set := func(state, reason, text string) { d.ended.State, d.ended.Reason, d.ended.Error = state, reason, text }
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		d.outcome, d.unheard = outcomeSystem, true
		switch timeout.TimeoutType() {
		case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
			set(dag.StateMoved, reasonNotPickedUp, "the node did not pick it up")
		case enumspb.TIMEOUT_TYPE_HEARTBEAT:
			beat := lastBeat(timeout)
			d.checkpoint = beat.GetCheckpoint()
			if !beat.GetSpawned() {
				set(dag.StateMoved, reasonNotStarted, "the node took the task and was silent before it had started it")
				return
			}
			set(dag.StateLost, "node_lost", "the node was lost while the task ran")
			d.res.StartedAt = beat.GetStartedAt()
		default:
			set(dag.StateFailed, "timeout", "the node did not end the task in time")
		}
		return
	}
	if temporal.IsCanceledError(err) {
		set(dag.StateCancelled, "cancelled", "")
		d.ended.NoRetry = true
		return
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		set(dag.StateFailed, "system", app.Message())
		d.ended.NoRetry, d.outcome = app.NonRetryable(), outcomeSystem
		return
	}
	set(dag.StateFailed, reasonPayload, err.Error()) // the answer could not be decoded
	d.ended.NoRetry = true
}

// lastBeat is what the last heartbeat of an attempt said, never nil. One that cannot
// be read counts as one whose process had started: that is the safe side.
func lastBeat(timeout *temporal.TimeoutError) *v1.ExecuteProgress {
	if !timeout.HasLastHeartbeatDetails() {
		return &v1.ExecuteProgress{}
	}
	var progress v1.ExecuteProgress
	if timeout.LastHeartbeatDetails(&progress) != nil {
		return &v1.ExecuteProgress{Spawned: true}
	}
	return &progress
}
