package words

import (
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// IsFannedOut reports whether a task is known to have fanned out.
func IsFannedOut(t *v1.Task) bool { return t.Count != nil }

// IsWaiting reports whether a task has fanned out and none of its instances can be placed on a
// node.
func IsWaiting(t *v1.Task) bool {
	return IsFannedOut(t) && !v1.HasTaskEnded(t) && t.GetError() != ""
}

// Tally describes the progress of a fan-out, such as "37/100 done, 4 running, 1 failed". Done
// counts successful instances.
func Tally(t *v1.Task) string {
	done, running, failures, paused, away := 0, 0, 0, 0, 0
	for state, n := range t.GetCounts() {
		switch {
		case v1.IsTaskSuccess(state):
			done += int(n)
		case state == v1.TaskRunning:
			running += int(n)
		case state == v1.TaskPaused:
			paused += int(n)
		case state == v1.TaskLost && v1.Lasts(t.GetType()) && !v1.HasTaskEnded(t):
			away += int(n)
		case v1.IsTaskFailure(state):
			failures += int(n)
		}
	}
	text := fmt.Sprintf("%d/%d done", done, t.GetCount())
	for _, part := range []struct {
		n    int
		word string
	}{
		{running, "running"},
		{paused, "paused"},
		{away, "lost"},
		{failures, "failed"},
		{int(t.GetCounts()[v1.TaskSkipped]), "skipped"},
		{int(t.GetCounts()[v1.TaskCancelled]), "cancelled"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	return text
}
