package flight

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/phrase"
)

// endElsewhere ends a task that has run on no node. The task, the claim and the number of the attempt are those of the core.
func (s *State) endElsewhere(i int, res *historyv1.ExecuteResponse, ended dag.Ended) {
	rec := s.core.Task(i)
	ended.Task, ended.Claim = i, rec.Claim
	if u := s.units[i]; u != nil {
		s.leave(u)
	}
	s.do(Settle{End{Attempt: rec.Attempt, Ended: ended, Response: res, Outcome: v1.OutcomeDone}})
}

// FailBeforeStart fails a task because an expression that it needs to start could not be evaluated.
func (s *State) FailBeforeStart(i int, a *historyv1.ConditionAnswer) []Effect {
	reason := v1.ReasonExpression
	if a.GetBroken() {
		reason = v1.ReasonSystem
	}
	s.raise(dag.Placed{Task: i, Claim: s.claimOf(i)})
	s.endElsewhere(i, &historyv1.ExecuteResponse{Result: NothingRan},
		dag.Ended{State: v1.TaskFailed, Reason: reason, Error: a.GetError(), ExitCode: -1, NoRetry: true})
	return s.take()
}

// Settled reports the end of a dispatch whose update of the context is merged, at once or when it is known whether the attempt may
// be retried. An end whose update does not fit in the context of the run is a failure; refusal says why, or is "".
func (s *State) Settled(end End, refusal string) []Effect {
	e := &end.Ended
	if refusal != "" {
		end.Response.Result.ContextUpdate = nil
		e.State, e.Reason, e.Error, e.NoRetry = v1.TaskFailed, v1.ReasonContext, refusal, true
	}
	if why := s.core.KillReason(e.Task); why != "" && e.State == v1.TaskCancelled {
		e.State, e.Reason, e.Error = v1.TaskKilled, v1.ReasonKilled, why
	}
	if !s.core.RetriesLeft(e.Task) {
		AddUnknownOutcome(e)
	}
	s.records.Ended(end)
	s.do(ShowEnd{end})
	if e.State == v1.TaskCompleted && s.records.Of(e.Task).CacheKey != "" {
		s.do(Cache{end})
	}
	if v1.IsRetryableEnd(e.State) && !e.NoRetry && s.core.Definition(e.Task).GetRetry().GetWhen() != "" {
		s.do(AskRetry{end})
	} else {
		s.raise(*e)
	}
	return s.take()
}

// RetryAnswered reports a failed attempt to the core once retry.when has been evaluated.
func (s *State) RetryAnswered(end End, a *historyv1.ConditionAnswer) []Effect {
	ended := end.Ended
	ended.NoRetry = !a.GetValue()
	if a.GetError() != "" {
		ended.Error = phrase.Because(ended.Error, "retry.when: "+a.GetError())
	}
	if ended.NoRetry {
		AddUnknownOutcome(&ended)
	}
	return []Effect{Raise{ended}}
}
