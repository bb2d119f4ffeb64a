package gateway

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"switchyard/gateway/vps"
	v1 "switchyard/proto/switchyard/v1"
)

// vpsRuns are the runs of machines.
type vpsRuns struct{ *Gateway }

var _ vps.Runs = vpsRuns{}

// Submit starts a run as SubmitRun does.
func (r vpsRuns) Submit(ctx context.Context, req *v1.SubmitRunRequest) (*v1.SubmitRunResponse, error) {
	return r.submit(ctx, req)
}

// StopTask stops a machine.
func (r vpsRuns) StopTask(context.Context, string, string, string) error {
	return connect.NewError(connect.CodeUnimplemented, errors.New("this gateway stops no machines yet; `switchyard vps kill` ends one"))
}

// RestartTask restarts a machine.
func (r vpsRuns) RestartTask(context.Context, string, string, string) error {
	return connect.NewError(connect.CodeUnimplemented, errors.New("this gateway restarts no machines yet"))
}
