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
	if end != nil && end.GetState() != dag.StateMoved {
		at = end.GetCompletedAt().AsTime()
	}
	switch {
	case rec.State == dag.StateQueued && rec.Retried && dag.Terminal(was):
		who := b.takeSteeredBy(i)
		add(eventRetried, by("put back", cmp.Or(who, "hand")), fact{dataBy, who})
		add(eventQueued, "")
	case rec.State == dag.StateQueued && !rec.Backoff && rec.Claim != e.claim:
		add(eventQueued, "")
	case rec.State == dag.StatePending && dag.Terminal(was):
		add(eventRetried, "waits again for what it depends on")
	case rec.State == was: // something about it has changed, but not where it stands
	case rec.State == dag.StateAssigned && rec.Node == "": // a person, or another run, has it
	case rec.State == dag.StateAssigned:
		add(eventAssigned, e.why, e.place...)
		e.place = nil
	case rec.State == dag.StateRunning:
		if f := b.fan(i); f != nil {
			add(eventExpanded, fmt.Sprintf("into %d instances", f.total), fact{dataInstances, int32(f.total)})
		}
	case rec.State == dag.StateCompleted: // its instances have, or a result was reused
		detail, run := "", ""
		if e.more != nil && e.more.cachedFrom != "" {
			run = e.more.cachedFrom
			detail = "cached from " + run
		}
		add(eventCompleted, detail, fact{dataCachedFrom, run})
	case rec.State == dag.StateSkipped:
		add(eventSkipped, because(rec.Reason, rec.Error), cause...)
	case rec.State == dag.StateCancelled:
		add(eventCancelled, because(rec.Reason, rec.Error), append(cause, fact{dataBy, b.takeSteeredBy(i)})...)
	case rec.State == dag.StateKilled:
		add(eventKilled, rec.Error, append(cause, fact{dataBy, b.takeSteeredBy(i)})...)
	case dag.Terminal(rec.State): // nothing ran
		add(eventFailed, because(rec.Reason, rec.Error), cause...)
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
		add(end.GetStartedAt().AsTime(), eventStarted, "")
	}
	switch at := end.GetCompletedAt().AsTime(); {
	case end.GetState() == dag.StateMoved:
		if rec.State == dag.StateQueued {
			add(now, eventReassigned, because(end.GetReason(), end.GetError()), causeFacts(end.GetReason(), end.GetError())...)
		}
		return rec.State == dag.StateQueued
	case rec.State == dag.StateCompleted, rec.State == dag.StateStopped:
		stopped := ""
		if rec.State == dag.StateStopped {
			stopped = rec.State
		}
		add(at, eventCompleted, stopped, append(attemptFacts(end), fact{dataState, stopped})...)
		return true
	case rec.State == dag.StateCancelled, rec.State == dag.StateKilled:
		return false
	default:
		detail := because(end.GetReason(), end.GetError())
		data := append(attemptFacts(end), causeFacts(end.GetReason(), end.GetError())...)
		if end.GetState() != dag.StateFailed {
			detail = because(end.GetState(), end.GetError())
			data = append(data, fact{dataState, end.GetState()})
		}
		add(at, eventFailed, detail, data...)
		if rec.State == dag.StateDeadLetter {
			add(at, eventDeadLettered, "no retries are left", data...)
		}
		return !rec.Retried || dag.Terminal(rec.State) || rec.Backoff
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
