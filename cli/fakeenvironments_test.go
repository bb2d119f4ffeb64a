package cli

import (
	"context"
	"sync"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeEnvironments records its requests. It answers reads of an environment from a list, in order, and repeats the last
// answer; a nil answer means that the environment does not exist.
type fakeEnvironments struct {
	switchyardv1connect.UnimplementedEnvironmentServiceHandler

	mu      sync.Mutex
	created []*v1.CreateEnvironmentRequest
	deleted []*v1.DeleteEnvironmentRequest
	looks   []*v1.Environment
	list    *v1.ListEnvironmentsResponse
	fail    error
	away    int           // number of reads that find no gateway
	looked  chan struct{} // closed at the first read, unless nil
}

func (f *fakeEnvironments) CreateEnvironment(_ context.Context, req *connect.Request[v1.CreateEnvironmentRequest]) (*connect.Response[v1.CreateEnvironmentResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created = append(f.created, req.Msg)
	return connect.NewResponse(&v1.CreateEnvironmentResponse{Environment: &v1.Environment{Name: req.Msg.GetName(), State: v1.EnvironmentCreating, Version: 2, Node: "gpu-1"}}), f.fail
}

func (f *fakeEnvironments) GetEnvironment(_ context.Context, req *connect.Request[v1.GetEnvironmentRequest]) (*connect.Response[v1.GetEnvironmentResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looked != nil {
		close(f.looked)
		f.looked = nil
	}
	if f.away > 0 {
		f.away--
		return nil, connect.NewError(connect.CodeUnavailable, errStopping)
	}
	e := f.looks[0]
	if len(f.looks) > 1 {
		f.looks = f.looks[1:]
	}
	if e == nil {
		return nil, connect.NewError(connect.CodeNotFound, errNoRun)
	}
	return connect.NewResponse(&v1.GetEnvironmentResponse{Environment: e}), nil
}

func (f *fakeEnvironments) ListEnvironments(context.Context, *connect.Request[v1.ListEnvironmentsRequest]) (*connect.Response[v1.ListEnvironmentsResponse], error) {
	return connect.NewResponse(f.list), nil
}

func (f *fakeEnvironments) DeleteEnvironment(_ context.Context, req *connect.Request[v1.DeleteEnvironmentRequest]) (*connect.Response[v1.DeleteEnvironmentResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted = append(f.deleted, req.Msg)
	return connect.NewResponse(&v1.DeleteEnvironmentResponse{Environment: f.looks[0]}), f.fail
}
