package runcommands

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runupdate"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// cancellation cancels runs.
type cancellation struct {
	client  client.Client
	index   resolver
	updater updater
	force   forcedCancel
}

// CancelRun requests the cancellation of a run. It returns once Temporal has accepted the request, not when
// the run has ended. A request that is sent again has the effect of one, and a request without an ID never counts as a second one; see
// CancelRunRequest.request_id. With force it returns when the run and everything below it have been terminated.
func (c cancellation) CancelRun(ctx context.Context, req *connect.Request[v1.CancelRunRequest]) (*connect.Response[v1.CancelRunResponse], error) {
	id, err := c.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	if req.Msg.GetForce() {
		res, err := c.force.cancel(ctx, id, req.Msg.GetReason())
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(res), nil
	}
	command := &historyv1.RunCommand{Reason: req.Msg.GetReason(), By: auth.From(ctx).Name, Now: req.Msg.GetNow(), RequestId: req.Msg.GetRequestId()}
	if err := c.signalCancel(ctx, id, command); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.CancelRunResponse{Id: id, FinallyRuns: !command.GetNow() && c.force.isInFinally(ctx, id)}), nil
}

// signalCancel signals an open run to end. It repeats the signal while the run is continuing as new.
func (c cancellation) signalCancel(ctx context.Context, id string, command *historyv1.RunCommand) error {
	ctx, cancel := context.WithTimeout(ctx, runupdate.Timeout)
	defer cancel()
	for {
		err := c.client.SignalWorkflow(ctx, id, "", names.CancelSignal, command)
		if err == nil {
			return nil
		}
		if !rpcerror.Is[*serviceerror.NotFound](err) {
			return fmt.Errorf("cancel run %s: %w", id, err)
		}
		// Temporal also returns NotFound for a closed workflow.
		if err = c.updater.ClosedError(ctx, id); rpcerror.CodeOf(err) != connect.CodeUnavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(runupdate.CrowdedPause):
		}
	}
}
