package workflows

import (
	"cmp"
	"fmt"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// tell logs what has happened to task i, which the board shows as it was before:
// a dispatch of it may have ended, and rec is what the core made of that.
func (b *board) tell(i int, rec dag.Record, end *v1.Attempt, now time.Time) {
	e := &b.entries[i]
	was := e.state
	at := now
	add := func(event, detail string, data ...fact) {
		b.log.add(at, event, i, rec.Node, rec.Attempt, rec.Claim, detail, data...)
	}
	cause := append(attemptFacts(end), causeFacts(rec.Reason, rec.Error)...)
	if end != nil && b.tellEnd(i, rec, end, now) {
		return
	}
	if end != nil && end.GetState() != v1.AttemptMoved {
		at = end.GetCompletedAt().AsTime()
	}
	switch {
	case rec.State == v1.TaskQueued && rec.Retried && v1.IsTaskTerminal(was):
		who := b.takeSteeredBy(i)
		add(v1.EventRetried, by("put back", cmp.Or(who, "hand")), fact{dataBy, who})
		add(v1.EventQueued, "")
	case rec.State == v1.TaskQueued && !rec.Backoff && rec.Claim != e.claim:
		add(v1.EventQueued, "")
	case rec.State == v1.TaskPending && v1.IsTaskTerminal(was):
		add(v1.EventRetried, "waits again for what it depends on")
	case rec.State == was: // something about it has changed, but not where it stands
	case rec.State == v1.TaskAssigned && rec.Node == "": // a person, or another run, has it
	case rec.State == v1.TaskAssigned:
		add(v1.EventAssigned, e.why, e.place...)
		e.place = nil
	case rec.State == v1.TaskRunning:
		if f := b.fan(i); f != nil {
			add(v1.EventExpanded, fmt.Sprintf("into %d instances", f.total), fact{dataInstances, int32(f.total)})
		}
	case rec.State == v1.TaskCompleted: // its instances have, or a result was reused
		detail, run := "", ""
		if e.more != nil && e.more.cachedFrom != "" {
			run = e.more.cachedFrom
			detail = "cached from " + run
		}
		add(v1.EventCompleted, detail, fact{dataCachedFrom, run})
	case rec.State == v1.TaskSkipped:
		add(v1.EventSkipped, because(rec.Reason, rec.Error), cause...)
	case rec.State == v1.TaskCancelled:
		add(v1.EventCancelled, because(rec.Reason, rec.Error), append(cause, fact{dataBy, b.takeSteeredBy(i)})...)
	case rec.State == v1.TaskKilled:
		add(v1.EventKilled, rec.Error, append(cause, fact{dataBy, b.takeSteeredBy(i)})...)
	case v1.IsTaskTerminal(rec.State): // nothing ran
		add(v1.EventFailed, because(rec.Reason, rec.Error), cause...)
	}
}

// takeSteeredBy returns who put task i back, cancelled or killed it, or "" if that is not known, and forgets it.
func (b *board) takeSteeredBy(i int) (who string) {
	if m := b.entries[i].more; m != nil {
		who, m.steeredBy = m.steeredBy, ""
	}
	return who
}

// tellEnd logs how a dispatch of task i ended, and whether that is all there is
// to tell.
func (b *board) tellEnd(i int, rec dag.Record, end *v1.Attempt, now time.Time) bool {
	add := func(at time.Time, event, detail string, data ...fact) {
		b.log.add(at, event, i, end.GetNode(), end.GetAttempt(), end.GetClaim(), detail, data...)
	}
	if end.GetStartedAt() != nil {
		add(end.GetStartedAt().AsTime(), v1.EventStarted, "")
	}
	switch at := end.GetCompletedAt().AsTime(); {
	case end.GetState() == v1.AttemptMoved:
		if rec.State == v1.TaskQueued {
			add(now, v1.EventReassigned, because(end.GetReason(), end.GetError()), causeFacts(end.GetReason(), end.GetError())...)
		}
		return rec.State == v1.TaskQueued
	case v1.IsTaskSuccess(rec.State):
		stopped := ""
		if rec.State == v1.TaskStopped {
			stopped = rec.State
		}
		add(at, v1.EventCompleted, stopped, append(attemptFacts(end), fact{dataState, stopped})...)
		return true
	case rec.State == v1.TaskCancelled, rec.State == v1.TaskKilled:
		return false
	default:
		detail := because(end.GetReason(), end.GetError())
		data := append(attemptFacts(end), causeFacts(end.GetReason(), end.GetError())...)
		if end.GetState() != v1.TaskFailed {
			detail = because(end.GetState(), end.GetError())
			data = append(data, fact{dataState, end.GetState()})
		}
		add(at, v1.EventFailed, detail, data...)
		if rec.State == v1.TaskDeadLetter {
			add(at, v1.EventDeadLettered, "no retries are left", data...)
		}
		return !rec.Retried || v1.IsTaskTerminal(rec.State) || rec.Backoff
	}
}

// because is a reason, as a word and in words.
func because(reason, text string) string {
	switch {
	case text == "":
		return reason
	case reason == "":
		return text
	}
	return reason + ": " + text
}
