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
	return &v1.Run{
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
	}
}

// setOrigin adds what only visibility knows of a run: what started its newest generation, and the run whose task did.
func setOrigin(run *v1.Run, info *workflowpb.WorkflowExecutionInfo) {
	known := visibility.Decode(info.GetSearchAttributes())
	run.Trigger, run.Parent = known.Trigger, known.Parent
}

// submittedAt returns when a run was submitted. Until a control process has begun the run, that is when it was started.
func submittedAt(info *workflowpb.WorkflowExecutionInfo, known visibility.Attributes) *timestamppb.Timestamp {
	if known.Submitted.IsZero() {
		return info.GetStartTime()
	}
	return timestamppb.New(known.Submitted)
}

// listedState returns the state of a run as lists show it: the one in its search attributes if that is more exact than the
// status in Temporal.
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

// MemoText returns a text in the memo of a run, or "" if it has none.
func MemoText(info *workflowpb.WorkflowExecutionInfo, key string) string {
	var text string
	payload := info.GetMemo().GetFields()[key]
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &text) != nil {
		return ""
	}
	return text
}

// listedProblem returns why an open run makes no progress, as lists show it: its workflow task fails, or it says itself
// what it waits for.
func listedProblem(info *workflowpb.WorkflowExecutionInfo) string {
	if problem := reportedProblem(info); problem != "" || !IsOpen(info.GetStatus()) {
		return problem
	}
	return MemoText(info, names.ProblemMemo)
}
