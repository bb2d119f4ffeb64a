package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
	"switchyard/workflows/status"
)

// dispatchEnd is how a dispatch of a task ended.
type dispatchEnd struct {
	assignment
	number         int32     // of the attempt
	ended          dag.Ended // as the core is to receive it
	res            *v1.ExecuteResponse
	outcome        string           // what it says of the node; empty: nothing
	unacknowledged bool             // it is unknown how the attempt ended, if it did
	continues      bool             // it has started outside of the nodes, and continues there if it was moved
	update         *structpb.Struct // what it adds to the context; nil: nothing
	// What the attempt has left in the file $SWITCHYARD_CHECKPOINT; nil: nothing new.
	checkpoint *v1.Checkpoint
}

// shown returns what people see of the end.
func (d dispatchEnd) shown() status.AttemptEnd {
	return status.AttemptEnd{
		Claim: d.claim, Number: d.number, Node: d.node, GPUs: d.gpus, NUMANode: d.numaNode,
		Ended: d.ended, Response: d.res, Outcome: d.outcome, Unacknowledged: d.unacknowledged, Continues: d.continues, Checkpoint: d.checkpoint,
	}
}

// attemptAnswer returns the answer of an attempt, which the activity of one that failed returns in an error.
func attemptAnswer(ctx workflow.Context, f workflow.Future) (*v1.ExecuteResponse, error) {
	res := &v1.ExecuteResponse{}
	err := f.Get(ctx, res)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == names.AttemptFailedError {
		err = app.Details(res)
	}
	return res, err
}

// dispatchEnds reads how the members of a dispatch ended from the result of its
// activity, and what that says of the node.
func (r *run) dispatchEnds(a assignment, members []int, att *attempt, res *v1.ExecuteResponse, err error) (ends []dispatchEnd, outcome string) {
	if len(members) > 1 {
		return r.batchEnds(a, members, att, res, err)
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
	d.ended.NoRetry = v1.IsFinalReason(d.ended.Reason)
	d.outcome = outcomeOf(d.ended.State, d.ended.Reason)
	d.unacknowledged = isUnacknowledged(res)
	d.update = res.GetResult().GetContextUpdate()
	d.ended.ExitCode = cmp.Or(res.GetResult(), status.NothingRan).GetExitCode()
}

// isUnacknowledged reports whether an attempt may have completed although its answer does not say so.
func isUnacknowledged(res *v1.ExecuteResponse) bool {
	return isCutShort(res.GetState(), res.GetReason()) || res.GetState() == v1.AttemptMoved && res.GetReason() == v1.ReasonLeaseLost
}

// settle ends an attempt, after its node was waited for where it may have completed without an answer.
func (r *run) settle(att *attempt, res *v1.ExecuteResponse, err error) {
	// A node that answers has let go of a remote attempt, and one that lasts has not started.
	if !isCutOff(res, err) || len(att.stopped) > 0 || err == nil && (r.isRemote(att) || r.lasts(att)) {
		r.over(att, res, err)
		return
	}
	r.awaitAnswer(att, res, err)
}

// isCutOff reports whether an attempt had started and was lost, with its heartbeats or its lease.
func isCutOff(res *v1.ExecuteResponse, err error) bool {
	if err == nil {
		return res.GetState() == v1.AttemptMoved && res.GetReason() == v1.ReasonLeaseLost
	}
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT && lastBeat(timeout).GetSpawned()
}

// isRetried reports whether all members of an attempt are tried again, or continue elsewhere, if it is lost.
func (r *run) isRetried(att *attempt) bool {
	return r.isRemote(att) || !slices.ContainsFunc(att.members, func(i int) bool {
		return !r.core.RetriesLeft(i) || r.core.Definition(i).GetRetry().GetWhen() != ""
	})
}

// awaitAnswer ends a lost attempt with what its node has recorded of it, once the node owes nothing more, and as it
// ended without it if nothing was recorded. A person who stops the attempt ends the wait.
func (r *run) awaitAnswer(att *attempt, res *v1.ExecuteResponse, err error) {
	ctx, cancel := workflow.WithCancel(r.ctx)
	att.cancel = cancel
	name, silence := r.core.Name(att.members[0]), r.heartbeatTimeout(att)
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		now, beat := workflow.Now(r.ctx), lastBeat(timeout)
		since := r.silentSince(att, beat)
		running := att.members[min(int(beat.GetEnded()), len(att.members)-1)]
		r.status.SetSilent(running, phrase.Silence(att.node, since), beat.GetStartedAt(), now)
	}
	req := &v1.AwaitAnswerRequest{
		Attempt: r.attemptRequest(att.assignment, att.members), HeartbeatTimeout: durationpb.New(silence),
		// A node that has lost a lease is alive; its next snapshot says what it has recorded.
		Retried: err != nil && r.isRetried(att),
	}
	req.Attempt.Adopt = true
	r.pending.Watch(r.startActivityWith(ctx, options.AwaitAnswer(name, req.Attempt), names.AwaitAnswerActivity, req, writtenIn(req.Attempt)), func(f workflow.Future) {
		cancel()
		answer := &v1.ExecuteResponse{}
		failure := f.Get(r.ctx, answer)
		_, away := errors.AsType[*temporal.ApplicationError](failure)
		isExcused := answer.GetState() == v1.AttemptMoved
		if isExcused {
			att.excuse = answer.GetError()
		}
		switch {
		case away:
			r.pending.Watch(r.awaitStore("look for the result of "+name, failure), func(workflow.Future) {
				r.succeeded()
				r.settle(att, res, err)
			})
		case failure == nil && answer.GetState() != v1.TaskLost && !isExcused:
			r.over(att, answer, nil)
		case failure == nil && err != nil:
			r.over(att, answer, err) // of a batch, some instances may have completed
		default:
			r.over(att, res, err)
		}
	})
}

// maxLostLeases is how often in a row an attempt that lost its lease on a live node is no attempt. Beyond it, a network
// that fails again and again spends the retries.
const maxLostLeases = 3

// judgeLostLease decides what becomes of the task of an attempt that had started and ended with its lease. A task that may
// be retried is placed anew, and that is no attempt; one that may not be is lost, as its attempt may have done its work.
// It returns what the end says of the node.
func (r *run) judgeLostLease(att *attempt, ends []dispatchEnd, outcome string) string {
	for k := range ends {
		d := &ends[k]
		e := &d.ended
		isMoved := e.State == v1.AttemptMoved && e.Reason == v1.ReasonLeaseLost
		isExcused := att.excuse != "" && e.State == v1.TaskLost && e.Reason == v1.ReasonNodeLost
		if !isMoved && !isExcused || att.stopped[e.Task] {
			continue
		}
		e.State, e.Reason, e.Error = v1.AttemptMoved, v1.ReasonLeaseLost, cmp.Or(att.excuse, e.Error)
		switch {
		case !r.core.IsRetryable(e.Task):
			e.State, e.NoRetry = v1.TaskLost, true
		case r.status.LostLeases(e.Task) >= maxLostLeases:
			e.State = v1.TaskLost
			e.Error += fmt.Sprintf("; after %d times in a row that counts as an attempt", maxLostLeases)
		}
		if att.excuse != "" {
			d.outcome = v1.OutcomeMoved
			return v1.OutcomeMoved
		}
		return outcome // of a batch, no later member had started
	}
	return outcome
}

// outcomeOf is what the answer of a node says of the node.
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
		// Placement did not know it yet, and would choose the node again and again.
		return v1.OutcomeRefused
	case v1.ReasonNotStarted:
		return v1.OutcomeSuspect
	}
	return v1.OutcomeMoved
}

// broken says what became of a dispatch whose activity did not return an answer:
// the task itself has neither succeeded nor failed.
func (r *run) broken(d *dispatchEnd, err error) {
	set := func(state, reason, text string) { d.ended.State, d.ended.Reason, d.ended.Error = state, reason, text }
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		d.outcome, d.unacknowledged = v1.OutcomeLost, true
		switch timeout.TimeoutType() {
		case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
			d.outcome = v1.OutcomeSuspect
			set(v1.AttemptMoved, v1.ReasonNotPickedUp, "the node did not pick it up")
		case enumspb.TIMEOUT_TYPE_HEARTBEAT:
			beat := lastBeat(timeout)
			d.checkpoint = beat.GetCheckpoint()
			if !beat.GetSpawned() {
				d.outcome = v1.OutcomeSuspect
				set(v1.AttemptMoved, v1.ReasonNotStarted, "the node took the task and was silent before it had started it")
				return
			}
			set(v1.TaskLost, v1.ReasonNodeLost, "the node was lost while the task ran")
			d.res.StartedAt = beat.GetStartedAt()
		default:
			d.outcome = v1.OutcomeSystem
			set(v1.TaskFailed, v1.ReasonTimeout, "the node did not end the task in time")
		}
		return
	}
	if temporal.IsCanceledError(err) {
		set(v1.TaskCancelled, v1.ReasonCancelled, "")
		d.ended.NoRetry = true
		return
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		set(v1.TaskFailed, v1.ReasonSystem, app.Message())
		d.ended.NoRetry, d.outcome = app.NonRetryable(), v1.OutcomeSystem
		return
	}
	set(v1.TaskFailed, v1.ReasonPayload, err.Error()) // the answer could not be decoded
	d.ended.NoRetry = true
}

// addUnknownOutcome adds to the error of a lost attempt that is not repeated that its outcome is unknown.
func addUnknownOutcome(ended *dag.Ended) {
	if isCutShort(ended.State, ended.Reason) {
		ended.Error += "; it may have done its work, but nothing was recorded, and it is not repeated"
	}
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
