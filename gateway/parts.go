package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// endParts ends what FanOut children still carry through for a run that has closed, and waits until nothing of it runs.
// A run that was ended from outside leaves them behind, and they would go on beside its next generation.
func (g *Gateway) endParts(ctx context.Context, status *v1.StatusResponse) error {
	ctx, cancel := context.WithTimeout(ctx, endPartsTimeout)
	defer cancel()
	var open []string
	for _, p := range status.GetParts() {
		if p.GetOver() {
			continue
		}
		id := partID(status.GetRun().GetId(), p)
		err := g.client.SignalWorkflow(ctx, id, "", names.OrderSignal, &v1.PartOrder{Cancel: true})
		if _, closed := errors.AsType[*serviceerror.NotFound](err); closed {
			continue
		}
		if err != nil {
			return fmt.Errorf("end instances of task %s: %w", p.GetTask(), err)
		}
		open = append(open, id)
	}
	for _, id := range open {
		// How it ends is all the same.
		_ = g.client.GetWorkflow(ctx, id, "").Get(ctx, nil)
		if ctx.Err() != nil {
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("instances of run %s are still being stopped; ask again", status.GetRun().GetId()))
		}
	}
	return nil
}

// partID returns the workflow id of the child that carries a part of a run through.
func partID(run string, p *v1.PartReport) string {
	return names.FanOut{Run: run, Chain: p.GetChain(), Generation: p.GetGeneration(), Task: p.GetTask(), From: int(p.GetFrom())}.ID()
}

// endPartsTimeout is more than a task may take that does not listen to SIGTERM.
const endPartsTimeout = 15 * time.Second
