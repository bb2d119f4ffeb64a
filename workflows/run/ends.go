package run

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/phrase"
)

// ends reports how dispatches have ended: to the status, to the cache and to the core.
type ends struct {
	*execution
	admitter  endUnits
	contexts  contextUpdater
	evaluator asker
	cache     endCache
}

// The ends use these parts of other components.
type (
	endUnits interface {
		leave(u *unit)
		unitOf(i int) *unit
	}
	endCache interface {
		queue(end flight.End)
	}
)

// endElsewhere ends a task that has run on no node.
func (es *ends) endElsewhere(i int, result *v1.TaskResult, ended dag.Ended) {
	rec := es.core.Task(i)
	ended.Task, ended.Claim = i, rec.Claim
	if u := es.admitter.unitOf(i); u != nil {
		es.admitter.leave(u)
	}
	es.ended(flight.End{Attempt: rec.Attempt, Ended: ended, Response: &v1.ExecuteResponse{Result: result}, Outcome: v1.OutcomeDone})
}

// failBeforeStart fails a task because an expression that it needs to start could not be evaluated.
func (es *ends) failBeforeStart(i int, a *v1.ConditionAnswer) {
	reason := v1.ReasonExpression
	if a.GetBroken() {
		reason = v1.ReasonSystem
	}
	es.raise(dag.Placed{Task: i, Claim: es.core.Task(i).Claim})
	es.endElsewhere(i, flight.NothingRan, dag.Ended{State: v1.TaskFailed, Reason: reason, Error: a.GetError(), ExitCode: -1, NoRetry: true})
}

// ended reports the end of a dispatch once its update of the context is merged. A dispatch whose update does not fit in the
// context of the run fails.
func (es *ends) ended(end flight.End) {
	es.contexts.add(end.Response.GetResult().GetContextUpdate(), func(refusal string) {
		if refusal != "" {
			end.Response.Result.ContextUpdate = nil
			end.Ended.State, end.Ended.Reason, end.Ended.Error, end.Ended.NoRetry = v1.TaskFailed, v1.ReasonContext, refusal, true
		}
		es.settled(end)
	})
}

// settled shows how a dispatch ended and reports the end to the core: at once, or when it is known whether the attempt may be
// retried.
func (es *ends) settled(end flight.End) {
	now := es.now()
	e := &end.Ended
	es.asKilled(e)
	if !es.core.RetriesLeft(e.Task) {
		flight.AddUnknownOutcome(e)
	}
	es.records.Ended(end)
	es.status.EndAttempt(e.Task, end, now)
	end.Response.AgentEvents = nil // the run has them as events; they are not part of a stored result
	es.cache.queue(end)
	if v1.IsRetryableEnd(e.State) && !e.NoRetry && es.core.Definition(e.Task).GetRetry().GetWhen() != "" {
		es.evaluator.ask(question{task: e.Task, kind: asksRetry, end: &end, answered: func(a *v1.ConditionAnswer) { es.mayRepeat(&end, a) }})
		return
	}
	es.raise(*e)
}

// mayRepeat reports a failed attempt to the core once retry.when has been evaluated.
func (es *ends) mayRepeat(end *flight.End, a *v1.ConditionAnswer) {
	ended := end.Ended
	ended.NoRetry = !a.GetValue()
	if a.GetError() != "" {
		ended.Error = phrase.Because(ended.Error, "retry.when: "+a.GetError())
	}
	if ended.NoRetry {
		flight.AddUnknownOutcome(&ended)
	}
	es.raise(ended)
}

// asKilled turns the cancellation of an attempt into a kill if a person has killed its task.
func (es *ends) asKilled(e *dag.Ended) {
	if why := es.killReason(e.Task); why != "" && e.State == v1.TaskCancelled {
		e.State, e.Reason, e.Error = v1.TaskKilled, v1.ReasonKilled, why
	}
}
