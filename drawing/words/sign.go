package words

import v1 "switchyard/proto/switchyard/v1"

// Sign returns one character for a state, for readers who cannot see its colour.
func Sign(state string) string {
	switch state {
	case v1.TaskCompleted:
		return "✓"
	case v1.TaskStopped:
		return "■"
	case v1.TaskRunning:
		return "●"
	case v1.TaskAssigned:
		return "◐"
	case v1.TaskQueued:
		return "◌"
	case v1.TaskPaused, v1.RunPendingApproval:
		return "‖"
	case v1.TaskPending:
		return "○"
	case v1.TaskSkipped:
		return "–"
	case v1.TaskCancelled:
		return "⊘"
	case v1.TaskRejected:
		return "⊗"
	case v1.TaskDeadLetter:
		return "†"
	case v1.TaskLost:
		return "?"
	case v1.TaskKilled:
		return "×"
	case v1.TaskKilledOOM:
		return "!"
	case "":
		return "○" // in a definition
	}
	return "✗"
}

// Tone returns the state whose colour a task or instance has. One that is away with its node does
// not count as failed.
func Tone(t interface {
	GetState() string
	GetNotice() string
}) string {
	if v1.IsTaskAway(t.GetState(), t.GetNotice()) {
		return v1.TaskPaused
	}
	return t.GetState()
}
