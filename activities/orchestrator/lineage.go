package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// lineage is the execution that a child belongs to. It is part of a line that begins with the execution that started the
// child. The zero value is the start of the line. Two events add an execution to a line:
//
//	continue as new   the next execution takes over every open child with the rest of the state
//	reset             the new execution takes over a child whose start event precedes the reset point, so that the child is
//	                  pending there, and a child that the terminated execution had itself taken over
type lineage struct {
	execution string
	inherited bool // the execution started with the child
}

// parentEnd returns how the parent of a child ended, or nil while the execution that the child belongs to is open.
func (c *Children) parentEnd(ctx context.Context, req *historyv1.AwaitedRun, known *lineage) (*historyv1.RunEnd, error) {
	for {
		fromStart := known.execution == ""
		if fromStart {
			known.execution = req.GetChild().GetStarter()
		}
		open, err := c.followLine(ctx, req, known)
		if open || err != nil {
			return nil, err
		}
		*known = lineage{} // an earlier execution may have been reset since
		if fromStart {
			return &historyv1.RunEnd{Error: "no open execution of the parent has started the child"}, nil
		}
	}
}

// followLine moves at to the last execution of its line, and reports whether that one is open.
func (c *Children) followLine(ctx context.Context, req *historyv1.AwaitedRun, at *lineage) (open bool, err error) {
	for {
		d, err := c.Client.DescribeWorkflowExecution(ctx, req.GetWorkflowId(), at.execution)
		if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
			return c.open(ctx, req) // the retention of this execution may be over while a later one is open
		}
		if err != nil {
			return false, fmt.Errorf("look up run %s: %w", req.GetWorkflowId(), err)
		}
		if d.GetWorkflowExecutionInfo().GetCloseTime() == nil {
			return true, nil
		}
		next, err := c.successor(ctx, req, d, at.inherited)
		if next.execution == "" || err != nil {
			return false, err
		}
		*at = next
	}
}

// successor returns the execution that takes over a child of a closed one, or the zero value if there is none.
func (c *Children) successor(ctx context.Context, req *historyv1.AwaitedRun, of *workflowservice.DescribeWorkflowExecutionResponse, inherited bool) (lineage, error) {
	if reset := of.GetWorkflowExtendedInfo().GetResetRunId(); reset != "" {
		if inherited {
			return lineage{reset, true}, nil
		}
		d, err := c.Client.DescribeWorkflowExecution(ctx, req.GetWorkflowId(), reset)
		if _, gone := errors.AsType[*serviceerror.NotFound](err); err != nil && !gone {
			return lineage{}, fmt.Errorf("look up run %s: %w", req.GetWorkflowId(), err)
		}
		if slices.ContainsFunc(d.GetPendingChildren(), func(p *workflowpb.PendingChildExecutionInfo) bool {
			// If there is no run id, the event that the child has started is about to follow.
			return p.GetWorkflowId() == req.GetChild().GetWorkflowId() && (p.GetRunId() == "" || p.GetRunId() == req.GetChild().GetFirst())
		}) {
			return lineage{reset, false}, nil
		}
	}
	info := of.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
		return lineage{}, nil
	}
	events := c.Client.GetWorkflowHistory(ctx, req.GetWorkflowId(), info.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	event, err := events.Next()
	if err != nil {
		return lineage{}, fmt.Errorf("read the end of run %s: %w", req.GetWorkflowId(), err)
	}
	return lineage{event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(), true}, nil
}
