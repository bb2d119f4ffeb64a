package vps

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// fakeRuns implements Runs in memory.
type fakeRuns struct {
	submitted []*v1.SubmitRunRequest
	answer    *v1.SubmitRunResponse
	fail      error
	runs      map[string]*v1.Run
	defs      map[string]*v1.Definition
	steered   []string
}

func (f *fakeRuns) Submit(_ context.Context, req *v1.SubmitRunRequest) (*v1.SubmitRunResponse, error) {
	f.submitted = append(f.submitted, req)
	return f.answer, f.fail
}

func (f *fakeRuns) GetRun(_ context.Context, req *connect.Request[v1.GetRunRequest]) (*connect.Response[v1.GetRunResponse], error) {
	run := f.runs[req.Msg.GetId()]
	if run == nil {
		return nil, rpcerror.NotFound("there is no run %s", req.Msg.GetId())
	}
	return connect.NewResponse(&v1.GetRunResponse{Run: run}), nil
}

func (f *fakeRuns) GetRunTask(_ context.Context, req *connect.Request[v1.GetRunTaskRequest]) (*connect.Response[v1.GetRunTaskResponse], error) {
	name, index, _ := names.ParseInstanceName(req.Msg.GetTask())
	instances := f.runs[req.Msg.GetId()].GetTasks()[name].GetInstances()
	if index >= len(instances) {
		return nil, rpcerror.NotFound("there is no task %s", req.Msg.GetTask())
	}
	return connect.NewResponse(&v1.GetRunTaskResponse{Instance: instances[index]}), nil
}

func (f *fakeRuns) GetRunDefinition(_ context.Context, req *connect.Request[v1.GetRunDefinitionRequest]) (*connect.Response[v1.GetRunDefinitionResponse], error) {
	return connect.NewResponse(&v1.GetRunDefinitionResponse{Id: req.Msg.GetId(), Definition: f.defs[req.Msg.GetId()]}), nil
}

func (f *fakeRuns) StopTask(_ context.Context, req *connect.Request[v1.StopTaskRequest]) (*connect.Response[v1.StopTaskResponse], error) {
	return connect.NewResponse(&v1.StopTaskResponse{Id: req.Msg.GetId()}), f.steer("stop", req.Msg.GetId(), req.Msg.GetTask(), req.Msg.GetReason())
}

func (f *fakeRuns) RestartTask(_ context.Context, req *connect.Request[v1.RestartTaskRequest]) (*connect.Response[v1.RestartTaskResponse], error) {
	return connect.NewResponse(&v1.RestartTaskResponse{Id: req.Msg.GetId()}), f.steer("restart", req.Msg.GetId(), req.Msg.GetTask(), req.Msg.GetReason())
}

func (f *fakeRuns) KillTask(_ context.Context, req *connect.Request[v1.KillTaskRequest]) (*connect.Response[v1.KillTaskResponse], error) {
	return connect.NewResponse(&v1.KillTaskResponse{Id: req.Msg.GetId()}), f.steer("kill", req.Msg.GetId(), req.Msg.GetTask(), req.Msg.GetReason())
}

func (f *fakeRuns) steer(action, run, task, reason string) error {
	f.steered = append(f.steered, fmt.Sprintf("%s %s %s %s", action, run, task, reason))
	return f.fail
}

// fakeTasks answers every list request with one page.
type fakeTasks struct {
	asked *v1.ListTasksRequest
	page  *v1.ListTasksResponse
}

func (f *fakeTasks) ListTasks(_ context.Context, req *connect.Request[v1.ListTasksRequest]) (*connect.Response[v1.ListTasksResponse], error) {
	f.asked = req.Msg
	return connect.NewResponse(f.page), nil
}
