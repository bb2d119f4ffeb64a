package workflows

import (
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
	add := func(event, detail string) { b.log.add(at, event, i, rec.Node, rec.Attempt, rec.Claim, detail) }
	if end != nil && b.tellEnd(i, rec, end, now) {
		return
	}
	if end != nil && end.GetState() != dag.StateMoved {
		at = end.GetCompletedAt().AsTime()
	}
	switch {
	case rec.State == dag.StateQueued && rec.Retried && dag.Terminal(was):
		add(eventRetried, b.putBackText(i))
		add(eventQueued, "")
	case rec.State == dag.StateQueued && !rec.Backoff && rec.Claim != e.claim:
		add(eventQueued, "")
	case rec.State == dag.StatePending && dag.Terminal(was):
		add(eventRetried, "waits again for what it depends on")
	case rec.State == was: // something about it has changed, but not where it stands
	case rec.State == dag.StateAssigned && rec.Node == "": // a person, or another run, has it
	case rec.State == dag.StateAssigned:
		add(eventAssigned, e.why)
	case rec.State == dag.StateRunning:
		if f := b.fan(i); f != nil {
			add(eventExpanded, fmt.Sprintf("into %d instances", f.total))
		}
	case rec.State == dag.StateCompleted: // its instances have, or a result was reused
		detail := ""
		if e.more != nil && e.more.cachedFrom != "" {
			detail = "cached from " + e.more.cachedFrom
		}
		add(eventCompleted, detail)
	case rec.State == dag.StateSkipped:
		add(eventSkipped, because(rec.Reason, rec.Error))
	case rec.State == dag.StateCancelled:
		add(eventCancelled, because(rec.Reason, rec.Error))
	case rec.State == dag.StateKilled:
		add(eventKilled, rec.Error)
	case dag.Terminal(rec.State): // nothing ran
		add(eventFailed, because(rec.Reason, rec.Error))
	}
}

// putBackText says for people that task i was put back, and by whom if that is known.
func (b *board) putBackText(i int) string {
	who := "hand"
	if m := b.entries[i].more; m != nil && m.putBackBy != "" {
		who, m.putBackBy = m.putBackBy, ""
	}
	return by("put back", who)
}

// tellEnd logs how a dispatch of task i ended, and whether that is all there is
// to tell.
func (b *board) tellEnd(i int, rec dag.Record, end *v1.Attempt, now time.Time) bool {
	add := func(at time.Time, event, detail string) {
		b.log.add(at, event, i, end.GetNode(), end.GetAttempt(), end.GetClaim(), detail)
	}
	if end.GetStartedAt() != nil {
		add(end.GetStartedAt().AsTime(), eventStarted, "")
	}
	switch at := end.GetCompletedAt().AsTime(); {
	case end.GetState() == dag.StateMoved:
		if rec.State == dag.StateQueued {
			add(now, eventReassigned, because(end.GetReason(), end.GetError()))
		}
		return rec.State == dag.StateQueued
	case rec.State == dag.StateCompleted, rec.State == dag.StateStopped:
		detail := ""
		if rec.State == dag.StateStopped {
			detail = rec.State
		}
		add(at, eventCompleted, detail)
		return true
	case rec.State == dag.StateCancelled, rec.State == dag.StateKilled:
		return false
	default:
		detail := because(end.GetReason(), end.GetError())
		if end.GetState() != dag.StateFailed {
			detail = because(end.GetState(), end.GetError())
		}
		add(at, eventFailed, detail)
		if rec.State == dag.StateDeadLetter {
			add(at, eventDeadLettered, "no retries are left")
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
