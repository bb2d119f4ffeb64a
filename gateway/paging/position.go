package paging

import (
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
)

// Position is a place in a list of executions, which is ordered newest first.
type Position struct {
	Start time.Time
	RunID string // Temporal's run ID, the tie-breaker for executions that started at the same time
}

// Before reports whether p comes before q in the list.
func (p Position) Before(q Position) bool {
	if !p.Start.Equal(q.Start) {
		return p.Start.After(q.Start)
	}
	return p.RunID > q.RunID
}

// PositionOf returns the position of an execution.
func PositionOf(info *workflowpb.WorkflowExecutionInfo) Position {
	return Position{Start: info.GetStartTime().AsTime(), RunID: info.GetExecution().GetRunId()}
}
