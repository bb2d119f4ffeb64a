package runview

import (
	enumspb "go.temporal.io/api/enums/v1"

	v1 "switchyard/proto/switchyard/v1"
)

// IsOpen reports whether a run is open. Continue-as-new counts as open.
func IsOpen(status enumspb.WorkflowExecutionStatus) bool {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
		enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return true
	}
	return false
}

// WasClosedFromOutside reports whether a status means that the run was terminated or timed out instead of
// ending by itself.
func WasClosedFromOutside(status enumspb.WorkflowExecutionStatus) bool { return reasonOf(status) != "" }

// StateOf returns the run state for a workflow status.
func StateOf(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return v1.RunPaused
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return v1.RunCompleted
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return v1.RunCancelled
	}
	if IsOpen(status) {
		return v1.RunRunning
	}
	return v1.RunFailed
}

// reasonOf returns the reason for which a run was closed from outside, or "" if it was not.
func reasonOf(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return v1.ReasonTerminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return v1.ReasonTimeout
	}
	return ""
}
