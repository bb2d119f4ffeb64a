package words

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Note returns a one-line remark about a task beyond its state. If now is zero, the remark omits
// remaining times and so changes only with the task.
func Note(t *v1.Task, now time.Time) string {
	if t.GetLateSince() != nil {
		return JoinNote("late", remark(t, now))
	}
	return remark(t, now)
}

// remark returns the note of a task that is not late.
func remark(t *v1.Task, now time.Time) string {
	text, _, _ := strings.Cut(t.GetError(), "\n")
	text = OneLine(text)
	if t.GetHeld() && !v1.HasTaskEnded(t) {
		return JoinNote("held", text)
	}
	if IsFannedOut(t) {
		return JoinNote(Tally(t), cmp.Or(OneLine(t.GetNotice()), text))
	}
	switch {
	case t.GetState() == v1.TaskPaused && t.GetReason() == v1.ReasonApproval:
		return JoinNote("waits for approval", text)
	case t.GetCachedFrom() != "" && t.GetState() == v1.TaskCompleted:
		return "cached from " + t.GetCachedFrom()
	case t.GetChildRun() != "" && strings.HasPrefix(text, "run "+t.GetChildRun()+" "):
		return text // for example "run deploy-4g5h6jkm failed: ..."
	case t.GetChildRun() != "":
		return JoinNote("run "+t.GetChildRun(), text)
	}
	if t.GetNotice() != "" {
		return OneLine(t.GetNotice())
	}
	if state := t.GetState(); text != "" && v1.IsTaskDispatched(state) {
		return "after " + text // the error of the previous attempt
	}
	if again := t.GetScheduledAfter(); again != nil && t.GetState() == v1.TaskQueued {
		switch wait := again.AsTime().Sub(now); {
		case now.IsZero() && t.GetQueuedAt() == nil:
			return JoinNote("again later", text)
		case !now.IsZero() && wait > 0:
			return JoinNote("again in "+Duration(wait), text)
		}
	}
	if state := t.GetState(); text == "" && state != v1.TaskCompleted && state != v1.TaskCancelled {
		text = t.GetReason()
	}
	if code := t.GetResult().GetExitCode(); text == "" && code > 0 {
		text = fmt.Sprintf("exit code %d", code)
	}
	return cmp.Or(text, OneLine(t.GetResult().GetWarning()))
}

// JoinNote appends a reason to a text, unless the reason is empty.
func JoinNote(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// Elapsed returns how long the newest attempt has run, or "" if it has not started.
func Elapsed(t *v1.Task, now time.Time) string {
	if t.GetStartedAt() == nil {
		return ""
	}
	end, isAway := now, v1.IsTaskAway(t.GetState(), t.GetNotice())
	if t.GetCompletedAt() != nil && !isAway {
		end = t.GetCompletedAt().AsTime()
	} else if t.GetState() != v1.TaskRunning && !isAway {
		return "" // left over from an attempt that is being retried
	}
	return Duration(end.Sub(t.GetStartedAt().AsTime()))
}

// Attempt returns the number of the newest attempt, or "" before the first one.
func Attempt(t *v1.Task) string {
	if t.GetNode() == "" && t.GetAttempt() == 0 {
		return ""
	}
	return strconv.Itoa(int(t.GetAttempt()))
}
