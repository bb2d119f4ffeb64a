package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Widths of the columns that hold what the system names. State words are at
// most as long as "dead_letter".
const (
	stateWidth   = len(v1.TaskDeadLetter)
	maxNameWidth = 72 // a task has 63, and an instance its number
	maxNodeWidth = 24
)

// note is what there is to say about a task beyond its state, in one line.
func note(t *v1.Task, now time.Time) string {
	text, _, _ := strings.Cut(t.GetError(), "\n")
	text = OneLine(text)
	if t.GetHeld() && !v1.HasTaskEnded(t) {
		return joinNote("held", text)
	}
	if IsFannedOut(t) {
		return joinNote(Tally(t), text)
	}
	switch {
	case t.GetState() == v1.TaskPaused && t.GetReason() == v1.ReasonApproval:
		return joinNote("waits for approval", text)
	case t.GetCachedFrom() != "" && t.GetState() == v1.TaskCompleted:
		return "cached from " + t.GetCachedFrom()
	case t.GetChildRun() != "" && strings.HasPrefix(text, "run "+t.GetChildRun()+" "):
		return text // "run deploy-4g5h6jkm failed: ..."
	case t.GetChildRun() != "":
		return joinNote("run "+t.GetChildRun(), text)
	}
	if t.GetNotice() != "" {
		return OneLine(t.GetNotice())
	}
	if state := t.GetState(); text != "" && v1.IsTaskDispatched(state) {
		return "after " + text // what the attempt before failed with
	}
	if again := t.GetScheduledAfter(); again != nil && t.GetState() == v1.TaskQueued {
		if wait := again.AsTime().Sub(now); wait > 0 {
			when := "again in " + Duration(wait)
			if text == "" {
				return when
			}
			return when + ": " + text
		}
	}
	if state := t.GetState(); text == "" && state != v1.TaskCompleted && state != v1.TaskCancelled {
		text = t.GetReason()
	}
	if code := t.GetResult().GetExitCode(); text == "" && code > 0 {
		text = fmt.Sprintf("exit code %d", code)
	}
	return text
}

// joinNote puts the reason for something behind it.
func joinNote(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// elapsed is how long the newest attempt has run, or "" where none has started.
func elapsed(t *v1.Task, now time.Time) string {
	if t.GetStartedAt() == nil {
		return ""
	}
	end, isAway := now, v1.IsTaskAway(t.GetState(), t.GetNotice())
	if t.GetCompletedAt() != nil && !isAway {
		end = t.GetCompletedAt().AsTime()
	} else if t.GetState() != v1.TaskRunning && !isAway {
		return "" // what is left of an attempt that is being repeated
	}
	return Duration(end.Sub(t.GetStartedAt().AsTime()))
}

// attempt is the number of the newest attempt, or "" before the first.
func attempt(t *v1.Task) string {
	if t.GetNode() == "" && t.GetAttempt() == 0 {
		return ""
	}
	return strconv.Itoa(int(t.GetAttempt()))
}

// Columns are what a table says of a task besides its name, state and node.
func Columns(t *v1.Task, now time.Time) (tried, took, about string) {
	return attempt(t), elapsed(t, now), note(t, now)
}
