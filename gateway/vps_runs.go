package gateway

import (
	"context"

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
func (r vpsRuns) StopTask(ctx context.Context, run, task, reason string) error {
	_, err := r.Gateway.StopTask(ctx, connect.NewRequest(&v1.StopTaskRequest{Id: run, Task: task, Reason: reason}))
	return err
}

// RestartTask restarts a machine.
func (r vpsRuns) RestartTask(ctx context.Context, run, task, reason string) error {
	_, err := r.Gateway.RestartTask(ctx, connect.NewRequest(&v1.RestartTaskRequest{Id: run, Task: task, Reason: reason}))
	return err
}
