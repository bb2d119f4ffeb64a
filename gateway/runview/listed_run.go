package runview

import (
	"cmp"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// ListedRun returns a run as lists show it.
func ListedRun(info *workflowpb.WorkflowExecutionInfo) *v1.Run {
	known := visibility.Decode(info.GetSearchAttributes())
	run := &v1.Run{
		Id:          info.GetExecution().GetWorkflowId(),
		Name:        known.Workflow,
		State:       listedState(info, known),
		Reason:      reasonOf(info.GetStatus()),
		CreatedAt:   submittedAt(info, known),
		CompletedAt: info.GetCloseTime(),
		Problem:     listedProblem(info),
		SubmittedBy: known.Owner,
		Batch:       known.Batch,
		Trigger:     known.Trigger,
		Parent:      known.Parent,

		IdempotencyKey: MemoText(info, names.KeyMemo),
	}
	setLateSince(run, known)
	return run
}

// setLateSince adds since when a run is late, which only Temporal has.
func setLateSince(run *v1.Run, known visibility.Attributes) {
	if !known.LateSince.IsZero() {
		run.LateSince = timestamppb.New(known.LateSince)
	}
}

// setOrigin adds what only Temporal has: the trigger of the newest generation of a run, the parent run, the idempotency key of the
// request, and since when the run is late.
func setOrigin(run *v1.Run, info *workflowpb.WorkflowExecutionInfo) {
	known := visibility.Decode(info.GetSearchAttributes())
	setLateSince(run, known)
	run.Trigger, run.Parent, run.IdempotencyKey = known.Trigger, known.Parent, MemoText(info, names.KeyMemo)
}

// submittedAt returns the submission time of a run. Until a control process has begun the run, this is its start time.
func submittedAt(info *workflowpb.WorkflowExecutionInfo, known visibility.Attributes) *timestamppb.Timestamp {
	if known.Submitted.IsZero() {
		return info.GetStartTime()
	}
	return timestamppb.New(known.Submitted)
}

// listedState returns the state of a run in lists: the state in its search attributes if it is more precise than
// Temporal's status.
func listedState(info *workflowpb.WorkflowExecutionInfo, known visibility.Attributes) string {
	state := StateOf(info.GetStatus())
	switch {
	case state == v1.RunRunning:
		return cmp.Or(known.State, v1.RunPending)
	case info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED && known.State == v1.RunRejected:
		return known.State
	}
	return state
}

// MemoText returns a text in the memo of a run, or "" if there is none.
func MemoText(info *workflowpb.WorkflowExecutionInfo, key string) string {
	var text string
	payload := info.GetMemo().GetFields()[key]
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &text) != nil {
		return ""
	}
	return text
}

// listedProblem returns why an open run makes no progress, as lists show it: its workflow task fails, or the run itself
// reports what it waits for. It returns "" if there is no problem.
func listedProblem(info *workflowpb.WorkflowExecutionInfo) string {
	if problem := reportedProblem(info); problem != "" || !IsOpen(info.GetStatus()) {
		return problem
	}
	return MemoText(info, names.ProblemMemo)
}
