package run

import (
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/structs"
)

// The server terminates a run if the commands of one workflow task take more than 4 MB, so each command of a run is charged to
// the budget of the workflow task that sends it. Charges are rules, not measured sizes: a release that adds a field to a
// message still ends workflow tasks where the recorded history ends them. Only text written by users is measured, as the JSON
// that it becomes.
const (
	// commandCharge covers a timer, a signal, a cancellation, an upsert, or one item in the answer of a local activity.
	commandCharge = 512
	// activityCharge covers an activity, without text written by users.
	activityCharge = 2 << 10
	// memberCharge covers one instance of a batch or one ancestor, without text written by users.
	memberCharge = 256
	// childCharge covers a child workflow, whose input is both in the answer that prepares it and in the command that starts
	// it.
	childCharge = 2*definition.MaxInlineInput + 4<<10
)

// answerCharge returns the charge for the recorded answer of a local activity. Most answers only name what the activity has
// stored.
func answerCharge(activity string) int {
	switch activity {
	case names.EvaluateActivity, names.LoadStateActivity, names.LoadInputActivity, names.LoadWorkflowActivity, names.ReopenActivity:
		return definition.MaxAnswerBytes
	}
	return commandCharge
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

// writtenIn returns how many bytes of a request users have written, measured as JSON.
func writtenIn(req *historyv1.ExecuteRequest) int {
	n := structs.Bytes(req.GetSpec()) + structs.Bytes(req.GetInput()) + structs.ValueBytes(req.GetItem()) +
		structs.Bytes(req.GetContext().GetValue()) + structs.Bytes(req.GetRunInput().GetValue()) + checkpointBytes(req.GetCheckpoint())
	//workflowcheck:ignore (a sum does not depend on the order)
	for name, value := range req.GetEnv() {
		n += structs.TextBytes(name) + structs.TextBytes(value)
	}
	//workflowcheck:ignore (a sum does not depend on the order)
	for name, reference := range req.GetSecretEnv() {
		n += structs.TextBytes(name) + structs.TextBytes(reference)
	}
	n += writtenByAncestors(req)
	for _, m := range req.GetBatch() {
		n += memberCharge + structs.ValueBytes(m.GetItem()) + checkpointBytes(m.GetCheckpoint())
	}
	for _, notice := range req.GetNotices() {
		n += structs.TextBytes(notice)
	}
	return n
}

// writtenByAncestors returns how many bytes of a request come from the task's ancestors.
func writtenByAncestors(req *historyv1.ExecuteRequest) int {
	n := 0
	for _, p := range req.GetParents() {
		n += memberCharge + structs.Bytes(p.GetOutput())
	}
	//workflowcheck:ignore (a sum does not depend on the order)
	for _, view := range req.GetViews() {
		n += memberCharge + resultBytes(view.GetResult())
	}
	for _, name := range req.GetEnds().GetCompleted() {
		n += structs.TextBytes(name)
	}
	for _, end := range req.GetEnds().GetOthers() {
		n += memberCharge + structs.TextBytes(end.GetTask()) + structs.TextBytes(end.GetError()) + structs.ValueBytes(structpb.NewListValue(end.GetFanOut().GetItems().GetList()))
	}
	return n
}

func checkpointBytes(c *historyv1.Checkpoint) int { return 2 * len(c.GetData()) } // base64

func resultBytes(res *v1.TaskResult) int {
	return structs.TextBytes(res.GetStdout()) + structs.TextBytes(res.GetStderr()) + structs.Bytes(res.GetOutput())
}
