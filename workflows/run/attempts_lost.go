package run

import (
	"errors"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
)

// settle ends an attempt. If the attempt may have completed without an answer, settle waits for its node first.
func (at *attempts) settle(att *attempt, res *v1.ExecuteResponse, err error) {
	// A node that answers has released a remote attempt and has not started a long-lived one.
	if !isCutOff(res, err) || len(att.stopped) > 0 || err == nil && (at.isRemote(att) || at.lasts(att)) {
		at.endAttempt(att, res, err)
		return
	}
	at.awaitRecord(att, res, err)
}

// isCutOff reports whether a started attempt was lost because its heartbeats stopped or its lease expired.
func isCutOff(res *v1.ExecuteResponse, err error) bool {
	if err == nil {
		return res.GetState() == v1.AttemptMoved && res.GetReason() == v1.ReasonLeaseLost
	}
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT && lastBeat(timeout).GetSpawned()
}

// isRetried reports whether all members of an attempt are retried, or continue elsewhere, if it is lost.
func (at *attempts) isRetried(att *attempt) bool {
	return at.isRemote(att) || !slices.ContainsFunc(att.members, func(i int) bool {
		return !at.core.RetriesLeft(i) || at.core.Definition(i).GetRetry().GetWhen() != ""
	})
}

// awaitRecord waits until the node of a lost attempt has delivered all its records, then ends the attempt with the recorded
// result. If there is no record, the attempt is lost. A person can end the wait by stopping the attempt.
func (at *attempts) awaitRecord(att *attempt, res *v1.ExecuteResponse, err error) {
	ctx, cancel := workflow.WithCancel(at.ctx)
	att.cancel = cancel
	name, silence := at.core.Name(att.members[0]), at.heartbeatTimeout(att)
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		now, beat := at.now(), lastBeat(timeout)
		since := at.silentSince(att, beat)
		running := att.members[min(int(beat.GetEnded()), len(att.members)-1)]
		at.status.SetSilent(running, phrase.Silence(att.node, since), beat.GetStartedAt(), now)
	}
	req := &v1.AwaitAnswerRequest{
		Attempt: at.requests.attemptRequest(att.assignment, att.members), HeartbeatTimeout: durationpb.New(silence),
		// A node that has lost a lease is alive; its next snapshot lists what it has recorded.
		Retried: err != nil && at.isRetried(att),
	}
	req.Attempt.Reattach = true
	at.outbox.watch(at.outbox.startActivityWith(ctx, options.AwaitAnswer(name, req.Attempt), names.AwaitAnswerActivity, req, writtenIn(req.Attempt)), func(f workflow.Future) {
		cancel()
		answer := &v1.ExecuteResponse{}
		failure := f.Get(at.ctx, answer)
		_, away := errors.AsType[*temporal.ApplicationError](failure)
		isExcused := answer.GetState() == v1.AttemptMoved
		if isExcused {
			att.excuse = answer.GetError()
		}
		switch {
		case away:
			at.outbox.watch(at.store.awaitStore("look for the result of "+name, failure), func(workflow.Future) {
				at.store.succeeded()
				at.settle(att, res, err)
			})
		case failure == nil && answer.GetState() != v1.TaskLost && !isExcused:
			at.endAttempt(att, answer, nil)
		case failure == nil && err != nil:
			at.endAttempt(att, answer, err) // some instances of a batch may have completed
		default:
			at.endAttempt(att, res, err)
		}
	})
}
