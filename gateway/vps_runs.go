package gateway

import (
	"context"

	"switchyard/gateway/vps"
	v1 "switchyard/proto/switchyard/v1"
)

// vpsRuns submits the runs of machines.
type vpsRuns struct{ *Gateway }

var _ vps.Runs = vpsRuns{}

// Submit starts a run as SubmitRun does.
func (r vpsRuns) Submit(ctx context.Context, req *v1.SubmitRunRequest) (*v1.SubmitRunResponse, error) {
	return r.submit(ctx, req)
}
