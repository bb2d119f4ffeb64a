package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"

	"switchyard/activities/heartbeat"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/names"
)

const (
	// A run is checked again after 1/awaitShare of the time for which it has been awaited, so its end is reported late by
	// that fraction. Long polls would be exact, but the server allows only a few.
	awaitShare                  = 20
	shortestAwait, longestAwait = 500 * time.Millisecond, 15 * time.Second
	// callTimeout bounds one call to the server.
	callTimeout = 4 * time.Second
	// looksPerSecond bounds how many runs one process checks per second, over all its activities.
	looksPerSecond = 100
	// maxEnds is the largest number of ends in one answer.
	maxEnds = 100
)

// AwaitRuns returns the ends of runs as soon as some have ended, in any execution. It returns an empty answer if the
// caller no longer wants one or the worker stops. If neither the server nor the store knows a run, the status of its end is empty.
func (c *Children) AwaitRuns(ctx context.Context, req *historyv1.AwaitRunsRequest) (*historyv1.AwaitRunsResponse, error) {
	ctx, stop := heartbeat.Keep(ctx, c.Client)
	defer stop()
	due := make([]time.Time, len(req.GetRuns()))
	parents := make([]lineage, len(req.GetRuns()))
	for {
		res := &historyv1.AwaitRunsResponse{}
		for i, run := range req.GetRuns() {
			if time.Now().Before(due[i]) || len(res.GetEnds()) == maxEnds {
				continue
			}
			if c.looks.Wait(ctx) != nil {
				break
			}
			end, err := c.ended(ctx, run, &parents[i])
			if err != nil {
				activity.GetLogger(ctx).Debug("looking up a run again", "run", run.GetWorkflowId(), "error", err)
			}
			if end != nil {
				end.WorkflowId = run.GetWorkflowId()
				res.Ends = append(res.Ends, end)
			}
			due[i] = time.Now().Add(min(max(time.Since(run.GetSince().AsTime())/awaitShare, shortestAwait), longestAwait))
		}
		if len(res.GetEnds()) > 0 || ctx.Err() != nil {
			return res, nil
		}
		select {
		case <-time.After(time.Until(slices.MinFunc(due, time.Time.Compare))):
		case <-ctx.Done():
		}
	}
}

// ended returns how a run ended, or nil while it is open.
func (c *Children) ended(ctx context.Context, req *historyv1.AwaitedRun, parent *lineage) (*historyv1.RunEnd, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if req.GetChild() != nil {
		return c.parentEnd(ctx, req, parent)
	}
	open, err := c.open(ctx, req)
	if open || err != nil {
		return nil, err
	}
	return c.runEnd(ctx, req)
}

// open reports whether an execution of the run is open.
func (c *Children) open(ctx context.Context, req *historyv1.AwaitedRun) (bool, error) {
	d, err := c.Client.DescribeWorkflowExecution(ctx, req.GetWorkflowId(), "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up run %s: %w", req.GetWorkflowId(), err)
	}
	info := d.GetWorkflowExecutionInfo()
	return isOf(info, req) && info.GetCloseTime() == nil, nil
}

// isOf reports whether an execution belongs to the run. If the server does not report the first execution, it returns
// true: such a server has no older execution open.
func isOf(info *workflowpb.WorkflowExecutionInfo, req *historyv1.AwaitedRun) bool {
	return req.GetFirst() == "" || info.GetFirstRunId() == req.GetFirst() || info.GetFirstRunId() == ""
}

// runEnd returns how a closed run ended, according to its last execution.
func (c *Children) runEnd(ctx context.Context, req *historyv1.AwaitedRun) (*historyv1.RunEnd, error) {
	execution := req.GetFirst()
	d, err := c.Client.DescribeWorkflowExecution(ctx, req.GetWorkflowId(), "")
	if err == nil && isOf(d.GetWorkflowExecutionInfo(), req) {
		// The server may have deleted the first executions.
		execution = d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	for {
		events := c.Client.GetWorkflowHistory(ctx, req.GetWorkflowId(), execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		event, err := events.Next()
		if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
			return c.storedEnd(ctx, req)
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

// storedEnd returns the end of a run that the server no longer knows, according to the last status in the store. A run that has left
// none may have done its work, so its end is final.
func (c *Children) storedEnd(ctx context.Context, req *historyv1.AwaitedRun) (*historyv1.RunEnd, error) {
	var last *historyv1.StatusResponse
	for generation := int32(0); req.GetFirst() != ""; generation++ {
		status := &historyv1.StatusResponse{}
		err := c.Store.GetMessage(ctx, storekey.Status(names.Home(req.GetWorkflowId(), req.GetFirst()), generation), status)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the status of run %s: %w", req.GetWorkflowId(), err)
		}
		last = status
	}
	run := last.GetRun()
	end := &historyv1.RunEnd{State: run.GetState(), Generation: run.GetGeneration(), Chain: req.GetFirst(), Error: run.GetError()}
	switch run.GetState() {
	case v1.RunCompleted:
		end.Status = v1.RunEndCompleted
	case v1.RunCancelled:
		end.Status = v1.RunEndCancelled
	case v1.RunFailed, v1.RunRejected:
		end.Status = v1.RunEndFailed
	default:
		return &historyv1.RunEnd{
			Error:       "the server no longer knows it, and it has left no final status, but it may have done its work; `switchyard runs retry` starts it again",
			FinalReason: v1.ReasonSystem,
		}, nil
	}
	return end, nil
}

// endOf returns the end of a run from its last event.
func endOf(event *historypb.HistoryEvent) *historyv1.RunEnd {
	kept := func(payloads *commonpb.Payloads) *historyv1.StatusResponse {
		var status historyv1.StatusResponse
		if dataconverter.New().FromPayloads(payloads, &status) != nil {
			return nil // the result of another type of workflow
		}
		return &status
	}
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		status := kept(event.GetWorkflowExecutionCompletedEventAttributes().GetResult())
		run := status.GetRun()
		return &historyv1.RunEnd{Status: v1.RunEndCompleted, State: run.GetState(), Generation: run.GetGeneration(), Chain: status.GetChain()}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		failure := event.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		status := kept(failure.GetApplicationFailureInfo().GetDetails())
		run := status.GetRun()
		end := &historyv1.RunEnd{
			Status: v1.RunEndFailed, State: run.GetState(), Generation: run.GetGeneration(), Error: failure.GetMessage(),
			FinalReason: status.GetFinalReason(),
		}
		if end.State == v1.RunRejected {
			end.Error = run.GetError()
		}
		return end
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return &historyv1.RunEnd{Status: v1.RunEndCancelled}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		return &historyv1.RunEnd{Status: v1.RunEndTerminated, Error: event.GetWorkflowExecutionTerminatedEventAttributes().GetReason()}
	default:
		return &historyv1.RunEnd{Error: "it has ended as " + event.GetEventType().String()}
	}
}
