package notification

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// title returns one line that states what has happened to a run.
func title(event, task string, run *historyv1.RunView) string {
	text := run.GetId() + " " + verb(event, task, run)
	if run.GetError() != "" {
		text += ": " + run.GetError()
	}
	return text
}

func verb(event, task string, run *historyv1.RunView) string {
	switch event {
	case v1.NotifyCompleted:
		return "completed"
	case v1.NotifyCancelled:
		return "was cancelled"
	}
	if run.GetState() == v1.RunRejected {
		return "was rejected"
	}
	return "failed"
}
