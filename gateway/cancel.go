package gateway

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// CancelRun asks a run to end. It returns when Temporal has taken the request, not
// when the run has ended; by force, when everything of it has been terminated.
func (g *Gateway) CancelRun(ctx context.Context, req *connect.Request[v1.CancelRunRequest]) (*connect.Response[v1.CancelRunResponse], error) {
	id, err := g.resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	if req.Msg.GetForce() {
		res, err := g.cancelByForce(ctx, id, req.Msg.GetReason())
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(res), nil
	}
	command := &v1.RunCommand{Reason: req.Msg.GetReason(), By: actor(ctx)}
	signalErr := g.client.SignalWorkflow(ctx, id, "", names.CancelSignal, command)
	if signalErr == nil {
		return connect.NewResponse(&v1.CancelRunResponse{Id: id}), nil
	}
	if !is[*serviceerror.NotFound](signalErr) {
		return nil, fmt.Errorf("cancel run %s: %w", id, signalErr)
	}
	return nil, g.closed(ctx, id) // Temporal says NotFound of a closed workflow, too
}
