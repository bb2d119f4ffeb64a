package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// A run is looked at again after an awaitShare-th of the time that it was waited for, so that its
	// end is told late by that share of it; long polls would take up the server's, which are few.
	awaitShare                  = 20
	shortestAwait, longestAwait = 500 * time.Millisecond, 15 * time.Second
	// awaitRunBeat is the time between two beats of an Await.
	awaitRunBeat = 4 * time.Second
)

// Await returns when a run has ended, in whichever execution of it, when nobody waits for that any more, or when the
// worker stops. A run that the server
// does not know has an end of which nothing is known.
func (c *ChildRuns) Await(ctx context.Context, req *v1.AwaitRunRequest) (*v1.RunEnd, error) {
	began, stop, token := time.Now(), activity.GetWorkerStopChannel(ctx), activity.GetInfo(ctx).TaskToken
	beat := time.NewTicker(awaitRunBeat)
	defer beat.Stop()
	for {
		open, err := c.open(ctx, req)
		if err != nil {
			return nil, err
		}
		if !open {
			return c.end(ctx, req)
		}
		look := time.After(min(max(time.Since(began)/awaitShare, shortestAwait), longestAwait))
	wait:
		for {
			select {
			case <-look:
				break wait
			case <-beat.C:
				if !wanted(ctx, c.Client, token) {
					return &v1.RunEnd{Open: true}, nil
				}
			case <-ctx.Done():
				return &v1.RunEnd{Open: true}, nil
			case <-stop:
				return &v1.RunEnd{Open: true}, nil
			}
		}
	}
}

// open says whether an execution of the run is open.
func (c *ChildRuns) open(ctx context.Context, req *v1.AwaitRunRequest) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	d, err := c.Client.DescribeWorkflowExecution(ctx, req.GetWorkflowId(), "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at run %s: %w", req.GetWorkflowId(), err)
	}
	info := d.GetWorkflowExecutionInfo()
	return isOf(info, req) && info.GetCloseTime() == nil, nil
}

// isOf says whether an execution is one of the run. A server that does not tell has no older one open.
func isOf(info *workflowpb.WorkflowExecutionInfo, req *v1.AwaitRunRequest) bool {
	return info.GetFirstRunId() == req.GetFirst() || info.GetFirstRunId() == ""
}

// end returns how the run has ended, from its last execution.
func (c *ChildRuns) end(ctx context.Context, req *v1.AwaitRunRequest) (*v1.RunEnd, error) {
	execution := req.GetFirst()
	d, err := c.Client.DescribeWorkflowExecution(ctx, req.GetWorkflowId(), "")
	if err == nil && isOf(d.GetWorkflowExecutionInfo(), req) {
		// The server may not know its first ones any more.
		execution = d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	for {
		events := c.Client.GetWorkflowHistory(ctx, req.GetWorkflowId(), execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		event, err := events.Next()
		if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
			return &v1.RunEnd{Error: "the server does not know it any more"}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the end of run %s: %w", req.GetWorkflowId(), err)
		}
		next := event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if next == "" {
			return endOf(event), nil
		}
		execution = next
	}
}

// endOf reads the last event of a run.
func endOf(event *historypb.HistoryEvent) *v1.RunEnd {
	kept := func(payloads *commonpb.Payloads) *v1.Run {
		var status v1.StatusResponse
		if converter.GetDefaultDataConverter().FromPayloads(payloads, &status) != nil {
			return nil // what a workflow of another kind has left
		}
		return status.GetRun()
	}
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		run := kept(event.GetWorkflowExecutionCompletedEventAttributes().GetResult())
		return &v1.RunEnd{Status: "completed", State: run.GetState(), Generation: run.GetGeneration()}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		failure := event.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		run := kept(failure.GetApplicationFailureInfo().GetDetails())
		end := &v1.RunEnd{Status: "failed", State: run.GetState(), Generation: run.GetGeneration(), Error: failure.GetMessage()}
		if end.State == "rejected" {
			end.Error = run.GetError()
		}
		return end
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return &v1.RunEnd{Status: "cancelled"}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		return &v1.RunEnd{Status: "terminated", Error: event.GetWorkflowExecutionTerminatedEventAttributes().GetReason()}
	default:
		return &v1.RunEnd{Error: "it has ended as " + event.GetEventType().String()}
	}
}
