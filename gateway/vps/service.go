package vps

import (
	"context"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// Runs starts, reads and controls runs on behalf of the caller of a context, who reaches only its own runs. Its methods must
// be safe for concurrent use. Their errors have codes.
type Runs interface {
	// Submit starts a run, or returns the run that an earlier request with the same idempotency key has started. Problems
	// with the definition are source.Problems in the error.
	Submit(ctx context.Context, req *v1.SubmitRunRequest) (*v1.SubmitRunResponse, error)
	// GetRun returns a page of the tasks of a run.
	GetRun(ctx context.Context, req *connect.Request[v1.GetRunRequest]) (*connect.Response[v1.GetRunResponse], error)
	// GetRunTask returns a task or instance of a run.
	GetRunTask(ctx context.Context, req *connect.Request[v1.GetRunTaskRequest]) (*connect.Response[v1.GetRunTaskResponse], error)
	// GetRunDefinition returns the definition that a run was started with.
	GetRunDefinition(ctx context.Context, req *connect.Request[v1.GetRunDefinitionRequest]) (*connect.Response[v1.GetRunDefinitionResponse], error)
	// StopTask stops a task gracefully.
	StopTask(ctx context.Context, req *connect.Request[v1.StopTaskRequest]) (*connect.Response[v1.StopTaskResponse], error)
	// RestartTask restarts the program of a task.
	RestartTask(ctx context.Context, req *connect.Request[v1.RestartTaskRequest]) (*connect.Response[v1.RestartTaskResponse], error)
	// KillTask ends a task as killed.
	KillTask(ctx context.Context, req *connect.Request[v1.KillTaskRequest]) (*connect.Response[v1.KillTaskResponse], error)
}

// Tasks lists the tasks that the caller of a context may see.
type Tasks interface {
	// ListTasks returns a page of tasks.
	ListTasks(ctx context.Context, req *connect.Request[v1.ListTasksRequest]) (*connect.Response[v1.ListTasksResponse], error)
}

// Door is the address of the gateway for SSH clients.
type Door struct {
	// Host is the host name, or "" if the gateway does not know how clients reach it.
	Host string
	// Port is 0 if the gateway has no SSH door.
	Port int
}

// Service implements VpsService.
type Service struct {
	Runs  Runs
	Tasks Tasks
	SSH   Door
}

var _ switchyardv1connect.VpsServiceHandler = Service{}

// GetVps returns a machine.
func (s Service) GetVps(ctx context.Context, req *connect.Request[v1.GetVpsRequest]) (*connect.Response[v1.GetVpsResponse], error) {
	m, err := s.find(ctx, req.Msg.GetId(), req.Msg.GetTask())
	if err != nil {
		return nil, err
	}
	def, err := s.Runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: m.run.GetId()}))
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.GetVpsResponse{Vps: s.describe(m, def.Msg.GetDefinition())}), nil
}

// StopVps stops a machine.
func (s Service) StopVps(ctx context.Context, req *connect.Request[v1.StopVpsRequest]) (*connect.Response[v1.StopVpsResponse], error) {
	m, err := s.find(ctx, req.Msg.GetId(), req.Msg.GetTask())
	if err != nil {
		return nil, err
	}
	stop := &v1.StopTaskRequest{Id: m.run.GetId(), Task: m.name, Reason: req.Msg.GetReason()}
	if _, err := s.Runs.StopTask(ctx, connect.NewRequest(stop)); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.StopVpsResponse{Id: m.run.GetId(), Task: m.name}), nil
}

// RestartVps restarts a machine.
func (s Service) RestartVps(ctx context.Context, req *connect.Request[v1.RestartVpsRequest]) (*connect.Response[v1.RestartVpsResponse], error) {
	m, err := s.find(ctx, req.Msg.GetId(), req.Msg.GetTask())
	if err != nil {
		return nil, err
	}
	restart := &v1.RestartTaskRequest{Id: m.run.GetId(), Task: m.name, Reason: req.Msg.GetReason()}
	if _, err := s.Runs.RestartTask(ctx, connect.NewRequest(restart)); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.RestartVpsResponse{Id: m.run.GetId(), Task: m.name}), nil
}

// KillVps kills a machine.
func (s Service) KillVps(ctx context.Context, req *connect.Request[v1.KillVpsRequest]) (*connect.Response[v1.KillVpsResponse], error) {
	m, err := s.find(ctx, req.Msg.GetId(), req.Msg.GetTask())
	if err != nil {
		return nil, err
	}
	kill := &v1.KillTaskRequest{Id: m.run.GetId(), Task: m.name, Reason: req.Msg.GetReason()}
	if _, err := s.Runs.KillTask(ctx, connect.NewRequest(kill)); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.KillVpsResponse{Id: m.run.GetId(), Task: m.name}), nil
}
