package run

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
)

// settle ends an attempt. If the attempt may have completed without an answer, settle waits for its node first.
func (at *attempts) settle(att *attempt, answer flight.Answer) {
	if at.facts(att).AtRest(answer) == flight.IsLookedFor {
		at.awaitRecord(att, answer)
		return
	}
	at.endAttempt(att, answer)
}

// isRetried reports whether all members of an attempt are retried, or continue elsewhere, if it is lost.
func (at *attempts) isRetried(att *attempt) bool {
	return v1.IsRemote(at.core.Definition(att.members[0]).GetType()) || !slices.ContainsFunc(att.members, func(i int) bool {
		return !at.core.RetriesLeft(i) || at.core.Definition(i).GetRetry().GetWhen() != ""
	})
}

// awaitRecord waits until the node of a lost attempt has delivered all its records, then ends the attempt with the recorded
// result. If there is no record, the attempt is lost. A person can end the wait by stopping the attempt.
func (at *attempts) awaitRecord(att *attempt, answer flight.Answer) {
	ctx, cancel := workflow.WithCancel(at.ctx)
	att.cancel = cancel
	name, silence := at.core.Name(att.members[0]), at.heartbeatTimeout(att)
	if answer.Kind == flight.Silent {
		beat := answer.Beat
		running := att.members[min(int(beat.GetEnded()), len(att.members)-1)]
		at.status.SetSilent(running, phrase.Silence(att.node, at.silentSince(att, beat)), beat.GetStartedAt(), at.now())
	}
	req := &v1.AwaitAnswerRequest{
		Attempt: at.requests.attemptRequest(att.assignment, att.members), HeartbeatTimeout: durationpb.New(silence),
		// A node that has lost a lease is alive; its next snapshot lists what it has recorded.
		Retried: answer.Kind != flight.Answered && at.isRetried(att),
	}
	req.Attempt.Reattach = true
	at.outbox.watch(at.outbox.startActivityWith(ctx, options.AwaitAnswer(name, req.Attempt), names.AwaitAnswerActivity, req, writtenIn(req.Attempt)), func(f workflow.Future) {
		cancel()
		recorded := &v1.ExecuteResponse{}
		failure := f.Get(at.ctx, recorded)
		_, away := errors.AsType[*temporal.ApplicationError](failure)
		isExcused := recorded.GetState() == v1.AttemptMoved
		if isExcused {
			att.excuse = recorded.GetError()
		}
		switch {
		case away:
			at.outbox.watch(at.store.awaitStore("look for the result of "+name, failure), func(workflow.Future) {
				at.store.succeeded()
				at.settle(att, answer)
			})
			return
		case failure == nil && recorded.GetState() != v1.TaskLost && !isExcused:
			answer = flight.Answer{Response: recorded, Beat: &v1.ExecuteProgress{}}
		case failure == nil && answer.Kind != flight.Answered:
			answer.Response = recorded // some instances of a batch may have completed
		}
		at.endAttempt(att, answer)
	})
}
