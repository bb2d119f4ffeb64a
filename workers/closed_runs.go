package workers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/notification"
	"switchyard/workflows/visibility"
)

const (
	// closedInterval is the time between two looks for runs that were closed from outside.
	closedInterval = 10 * time.Second
	// closedSince is how far back the first look of a leader goes, and closedOverlap how far a later one goes before the last:
	// visibility learns of an end late.
	closedSince   = time.Hour
	closedOverlap = 2 * time.Minute
)

// closedRuns tells people about runs that were closed from outside, which cannot tell them themselves.
type closedRuns struct {
	client *Connection
	store  *store.Store
	notify []*v1.Notification // the entries of the fleet
	outbox *outbox
	log    *slog.Logger
	done   map[string]time.Time // the executions that were looked at, by run ID, with their close times
}

// watch looks for such runs until ctx ends.
func (c *closedRuns) watch(ctx context.Context) {
	for since := time.Now().Add(-closedSince); ; {
		began := time.Now()
		if err := c.look(ctx, since); err == nil {
			since = began.Add(-closedOverlap)
			for execution, at := range c.done {
				if at.Before(since) {
					delete(c.done, execution)
				}
			}
		} else if ctx.Err() == nil {
			c.log.Warn("cannot look for runs that were terminated, to tell people about them", "error", err)
		}
		if !pause(ctx, closedInterval) {
			return
		}
	}
}

// look tells people about the runs that have been closed from outside since a time.
func (c *closedRuns) look(ctx context.Context, since time.Time) error {
	req := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus IN ('Terminated', 'TimedOut') AND CloseTime >= '%s'",
		names.RunWorkflow, since.UTC().Format(time.RFC3339Nano))}
	for {
		page, err := c.client.ListWorkflow(ctx, req)
		if err != nil {
			return err
		}
		for _, info := range page.GetExecutions() {
			if _, isDone := c.done[info.GetExecution().GetRunId()]; isDone {
				continue
			}
			if err := c.tell(ctx, info); err != nil {
				c.log.Warn("cannot tell people about a run that was terminated", "run", info.GetExecution().GetWorkflowId(), "error", err)
				continue
			}
			c.done[info.GetExecution().GetRunId()] = info.GetCloseTime().AsTime()
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

// tell tells people about the end of a run, unless the run continues in a newer execution.
func (c *closedRuns) tell(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id := info.GetExecution().GetWorkflowId()
	newest, err := c.client.DescribeWorkflowExecution(ctx, id, "")
	if unknown(err) || err == nil && newest.GetWorkflowExecutionInfo().GetExecution().GetRunId() != info.GetExecution().GetRunId() {
		return nil // it was reset, retried or deleted
	}
	if err != nil {
		return err
	}
	in, err := c.input(ctx, info)
	if err != nil {
		return err
	}
	entries := notification.Entries(notification.OfRun(in, c.notify), v1.NotifyFailed)
	if len(entries) == 0 {
		return nil
	}
	known := visibility.Decode(info.GetSearchAttributes())
	reason, text := v1.ReasonTerminated, "its workflow was terminated"
	if hasBegun := known.State != v1.RunPending && known.State != v1.RunPendingApproval; hasBegun && len(in.GetDefinition().GetFinally()) > 0 {
		text += "; its finally has not run: `switchyard runs retry " + id + " --finally-only` runs it"
	}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT {
		reason, text = v1.ReasonTimeout, "the time-out of its workflow in Temporal is over"
	}
	message := &historyv1.NotifyInput{Event: v1.NotifyFailed, Chain: in.GetChain(), At: timestamppb.New(info.GetCloseTime().AsTime()), Notify: entries, Run: &historyv1.RunView{
		Id: id, Name: in.GetDefinition().GetName(), State: v1.RunFailed, Reason: reason, Error: text, Generation: in.GetGeneration(),
		Trigger: known.Trigger, SubmittedBy: known.Owner, Batch: known.Batch, Input: notification.Input(in),
	}}
	return c.outbox.Tell(ctx, message)
}

// input returns the input of an execution of a run, with its chain.
func (c *closedRuns) input(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*historyv1.RunInput, error) {
	id, execution := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	history := c.client.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := history.Next()
	if err != nil {
		return nil, err
	}
	start := first.GetWorkflowExecutionStartedEventAttributes()
	in := &historyv1.RunInput{}
	if err := dataconverter.New().FromPayloads(start.GetInput(), in); err != nil {
		return nil, err
	}
	if key := in.GetStored(); key != "" {
		if err := c.store.GetMessage(ctx, key, in); err != nil {
			return nil, err
		}
	}
	chain := cmp.Or(in.GetChain(), start.GetFirstExecutionRunId())
	if original := start.GetOriginalExecutionRunId(); original != "" && original != execution {
		chain = execution // as workflows/run sees it after a reset
	}
	if in, err = definition.Unpack(in); err != nil {
		return nil, err
	}
	in.Chain = chain
	return in, nil
}
