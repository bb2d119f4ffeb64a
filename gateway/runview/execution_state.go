package runview

import (
	enumspb "go.temporal.io/api/enums/v1"

	v1 "switchyard/proto/switchyard/v1"
)

// IsOpen reports whether a run continues, possibly in another execution.
func IsOpen(status enumspb.WorkflowExecutionStatus) bool {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
		enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return true
	}
	return false
}

// WasClosedFromOutside reports whether a run of a status did not end by itself.
func WasClosedFromOutside(status enumspb.WorkflowExecutionStatus) bool { return reasonOf(status) != "" }

// StateOf returns the state of a run whose workflow has a status.
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

// reasonOf returns why a run ended that did not end by itself, or "" if it did.
func reasonOf(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return v1.ReasonTerminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return v1.ReasonTimeout
	}
	return ""
}
