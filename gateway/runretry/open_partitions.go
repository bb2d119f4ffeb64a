package runretry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// partitionEnder ends the FanOut children that a closed run has left behind.
type partitionEnder struct {
	client   client.Client
	statuses statusKeeper
}

// endPartsTimeout exceeds the time that a task may take to end if it ignores SIGTERM.
const endPartsTimeout = 15 * time.Second

// cancel cancels the open FanOut children of a closed run and waits until they have ended. A run that was closed from
// outside leaves them behind, and they would continue beside its next generation. For children that were closed along with
// the run it keeps their progress.
func (e partitionEnder) cancel(ctx context.Context, status *historyv1.StatusResponse) error {
	ctx, cancel := context.WithTimeout(ctx, endPartsTimeout)
	defer cancel()
	var open []*historyv1.PartitionReport
	for _, p := range status.GetPartitions() {
		if p.GetOver() {
			continue
		}
		id := runview.PartID(status.GetRun().GetId(), p)
		err := e.client.SignalWorkflow(ctx, id, "", names.OrderSignal, &historyv1.PartitionOrder{Cancel: true})
		if _, closed := errors.AsType[*serviceerror.NotFound](err); err != nil && !closed {
			return fmt.Errorf("end instances of task %s: %w", p.GetTask(), err)
		}
		open = append(open, p)
	}
	for _, p := range open {
		id := runview.PartID(status.GetRun().GetId(), p)
		_ = e.client.GetWorkflow(ctx, id, "").Get(ctx, nil) // ensureStored reads how the child ended
		if ctx.Err() != nil {
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("instances of run %s are still being stopped; try again", status.GetRun().GetId()))
		}
		if err := e.ensureStored(ctx, id, p.GetGeneration()); err != nil {
			return err
		}
	}
	return nil
}

// ensureStored stores the status of a FanOut child that was closed from outside. The next generation reads from it what has
// completed.
func (e partitionEnder) ensureStored(ctx context.Context, id string, generation int32) error {
	desc, err := e.client.DescribeWorkflowExecution(ctx, id, "")
	switch _, unknown := errors.AsType[*serviceerror.NotFound](err); {
	case unknown:
		return nil // the child was never started
	case err != nil:
		return fmt.Errorf("look up %s: %w", id, err)
	case !runview.WasClosedFromOutside(desc.GetWorkflowExecutionInfo().GetStatus()):
		return nil // the child has stored its status itself
	}
	if _, err := e.statuses.ensureStored(ctx, desc, "", generation); err != nil {
		return fmt.Errorf("store the progress of %s: %w", id, err)
	}
	return nil
}
