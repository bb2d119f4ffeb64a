package calls

import (
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// The server terminates a run if the commands of one workflow task take more than 4 MB, so each command of a run is charged to
// the budget of the workflow task that sends it. Charges are rules, not measured sizes: a release that adds a field to a
// message still ends workflow tasks where the recorded history ends them. Only text written by users is measured, as the JSON
// that it becomes.
const (
	// CommandCharge covers a timer, a signal, a cancellation, an upsert, or one item in the answer of a local activity.
	CommandCharge = 512
	// activityCharge covers an activity, without text written by users.
	activityCharge = 2 << 10
	// ChildCharge covers a child workflow. The answer that prepares the child and the command that starts it both hold its input.
	ChildCharge = 2*definition.MaxInlineInput + 4<<10
)

// answerCharge returns the charge for the recorded answer of a local activity. Most answers only name what the activity has
// stored.
func answerCharge(activity string) int {
	switch activity {
	case names.EvaluateActivity, names.LoadStateActivity, names.LoadInputActivity, names.LoadWorkflowActivity, names.ReopenActivity:
		return definition.MaxAnswerBytes
	}
	return CommandCharge
}

// budget is what the commands of the current workflow task have been charged.
type budget struct {
	task  int // history length at the start of the workflow task, which identifies it
	spent int
}

// charged adds a charge to a workflow task and returns the sum of its charges.
func (b *budget) charged(task, bytes int) int {
	if task != b.task {
		b.task, b.spent = task, 0
	}
	b.spent += bytes
	return b.spent
}
