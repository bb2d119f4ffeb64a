package notification

import (
	"cmp"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// title returns one line that states what has happened to a run, or to the schedule of a workflow if the run has no ID.
func title(event string, in *historyv1.NotifyInput, run *historyv1.RunView) string {
	subject := run.GetId()
	if subject == "" {
		subject = "the schedule of " + run.GetName()
	}
	text := subject + " " + verb(event, in.GetTask(), in.GetEvent() == v1.NotifyReminded, run)
	if why := cmp.Or(in.GetDetail(), run.GetError()); why != "" {
		text += ": " + why
	}
	return text
}

func verb(event, task string, isReminder bool, run *historyv1.RunView) string {
	switch event {
	case v1.NotifyCompleted:
		return v1.RunCompleted
	case v1.NotifyCancelled:
		return "was cancelled"
	case v1.NotifyRecovered:
		return "completed, and the run before it had failed"
	case v1.NotifyLate:
		return strings.TrimSpace(task + " is late")
	case v1.NotifyApproval:
		waits := " waits for an approval"
		if isReminder {
			waits = " still" + waits
		}
		return strings.TrimSpace(task + waits)
	case v1.NotifyDeadLetter:
		return "has a dead letter"
	}
	if run.GetState() == v1.RunRejected {
		return "was rejected"
	}
	return v1.RunFailed
}
