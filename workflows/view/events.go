package view

import (
	"cmp"
	"fmt"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/phrase"
)

// logChange logs a change of task i. It is called before the shown state is updated. end is the end of a dispatch, or nil if
// none has ended, and rec is the resulting record of the core.
func (s *Status) logChange(i int, rec dag.Record, end *v1.Attempt, now time.Time) {
	e := &s.entries[i]
	was := e.state
	at := now
	add := func(event, detail string, data ...eventlog.Fact) {
		s.log.Add(at, event, i, rec.Node, rec.Attempt, rec.Claim, detail, data...)
	}
	cause := append(eventlog.AttemptFacts(end), eventlog.CauseFacts(rec.Reason, rec.Error)...)
	if end != nil && s.logEnd(i, rec, end, now) {
		return
	}
	if end != nil && end.GetState() != v1.AttemptMoved {
		at = end.GetCompletedAt().AsTime()
	}
	switch {
	case rec.State == v1.TaskQueued && rec.Retried && v1.IsTaskTerminal(was):
		who := s.popSteeredBy(i)
		add(v1.EventRetried, phrase.By("put back", cmp.Or(who, "hand")), eventlog.KeyBy.Of(who))
		add(v1.EventQueued, "")
	case rec.State == v1.TaskQueued && !rec.Backoff && rec.Claim != e.claim:
		add(v1.EventQueued, "")
	case rec.State == v1.TaskPending && v1.IsTaskTerminal(was):
		add(v1.EventRetried, "waits again for what it depends on")
	case rec.State == was: // something else about it has changed
	case rec.State == v1.TaskAssigned && rec.Node == "": // it waits for approval or for another run
	case rec.State == v1.TaskAssigned:
		a := s.units.AssignmentOf(i)
		add(v1.EventAssigned, a.GetWhy(), eventlog.PlaceFacts(a)...)
	case rec.State == v1.TaskRunning:
		if n, ok := s.units.InstanceCount(i); ok {
			add(v1.EventExpanded, fmt.Sprintf("into %d instances", n), eventlog.KeyInstances.Of(int32(n)))
		}
	case rec.State == v1.TaskCompleted: // its instances have completed, or a result was reused
		detail, run := "", s.records.Of(i).CachedFrom
		if run != "" {
			detail = "cached from " + run
		}
		add(v1.EventCompleted, detail, eventlog.KeyCachedFrom.Of(run))
	case rec.State == v1.TaskSkipped:
		add(v1.EventSkipped, phrase.Because(rec.Reason, rec.Error), cause...)
	case rec.State == v1.TaskCancelled:
		add(v1.EventCancelled, phrase.Because(rec.Reason, rec.Error), append(cause, eventlog.KeyBy.Of(s.popSteeredBy(i)))...)
	case rec.State == v1.TaskKilled:
		add(v1.EventKilled, rec.Error, append(cause, eventlog.KeyBy.Of(s.popSteeredBy(i)))...)
	case rec.State == v1.TaskRejected && rec.Claim == 0: // with its run
		add(v1.EventRejected, rec.Error, cause...)
	case v1.IsTaskTerminal(rec.State): // nothing ran, or its deadline has stopped it
		add(v1.EventFailed, phrase.Because(rec.Reason, rec.Error), cause...)
	}
}

// popSteeredBy returns and clears who requeued, cancelled or killed task i, or "" if unknown.
func (s *Status) popSteeredBy(i int) (who string) {
	e := &s.entries[i]
	who, e.steeredBy = e.steeredBy, ""
	return who
}

// logEnd logs the end of a dispatch of task i. It reports whether the change needs no further event.
func (s *Status) logEnd(i int, rec dag.Record, end *v1.Attempt, now time.Time) bool {
	add := func(at time.Time, event, detail string, data ...eventlog.Fact) {
		s.log.Add(at, event, i, end.GetNode(), end.GetAttempt(), end.GetClaim(), detail, data...)
	}
	if end.GetStartedAt() != nil {
		add(end.GetStartedAt().AsTime(), v1.EventStarted, "")
	}
	s.logAgent(i, end)
	switch at := end.GetCompletedAt().AsTime(); {
	case end.GetState() == v1.AttemptMoved:
		if rec.State == v1.TaskQueued {
			add(now, v1.EventReassigned, phrase.Because(end.GetReason(), end.GetError()), eventlog.CauseFacts(end.GetReason(), end.GetError())...)
		}
		return rec.State == v1.TaskQueued
	case v1.IsTaskSuccess(rec.State):
		warning := end.GetWarning()
		detail, facts := warning, append(eventlog.AttemptFacts(end), eventlog.KeyWarning.Of(warning))
		if rec.State == v1.TaskStopped {
			who := s.popSteeredBy(i)
			detail = phrase.Because(phrase.By(rec.State, who), end.GetError())
			facts = append(facts, eventlog.KeyState.Of(rec.State), eventlog.KeyBy.Of(who))
		}
		add(at, v1.EventCompleted, detail, facts...)
		return true
	case rec.State == v1.TaskCancelled, rec.State == v1.TaskKilled, end.GetState() == v1.TaskCancelled:
		return false // the record says why it was stopped
	default:
		detail := phrase.Because(end.GetReason(), end.GetError())
		data := append(eventlog.AttemptFacts(end), eventlog.CauseFacts(end.GetReason(), end.GetError())...)
		if end.GetState() != v1.TaskFailed {
			detail = phrase.Because(end.GetState(), end.GetError())
			data = append(data, eventlog.KeyState.Of(end.GetState()))
		}
		add(at, v1.EventFailed, detail, data...)
		if rec.State == v1.TaskDeadLetter {
			add(at, v1.EventDeadLettered, "no retries are left", data...)
		}
		return !rec.Retried || v1.IsTaskTerminal(rec.State) || rec.Backoff
	}
}
