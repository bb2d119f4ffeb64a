package cli

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeRun is the run that a fakeGateway controls.
const fakeRun = "nightly-4g5h6jkm"

func (f *fakeGateway) PauseRun(_ context.Context, req *connect.Request[v1.PauseRunRequest]) (*connect.Response[v1.PauseRunResponse], error) {
	return answer(f, req, &v1.PauseRunResponse{Id: fakeRun})
}

func (f *fakeGateway) ResumeRun(_ context.Context, req *connect.Request[v1.ResumeRunRequest]) (*connect.Response[v1.ResumeRunResponse], error) {
	return answer(f, req, &v1.ResumeRunResponse{Id: fakeRun})
}

func (f *fakeGateway) HoldTask(_ context.Context, req *connect.Request[v1.HoldTaskRequest]) (*connect.Response[v1.HoldTaskResponse], error) {
	return answer(f, req, &v1.HoldTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) ReleaseTask(_ context.Context, req *connect.Request[v1.ReleaseTaskRequest]) (*connect.Response[v1.ReleaseTaskResponse], error) {
	return answer(f, req, &v1.ReleaseTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) CancelTask(_ context.Context, req *connect.Request[v1.CancelTaskRequest]) (*connect.Response[v1.CancelTaskResponse], error) {
	return answer(f, req, &v1.CancelTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) PauseTask(_ context.Context, req *connect.Request[v1.PauseTaskRequest]) (*connect.Response[v1.PauseTaskResponse], error) {
	return answer(f, req, &v1.PauseTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) ResumeTask(_ context.Context, req *connect.Request[v1.ResumeTaskRequest]) (*connect.Response[v1.ResumeTaskResponse], error) {
	return answer(f, req, &v1.ResumeTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) StopTask(_ context.Context, req *connect.Request[v1.StopTaskRequest]) (*connect.Response[v1.StopTaskResponse], error) {
	return answer(f, req, &v1.StopTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) RestartTask(_ context.Context, req *connect.Request[v1.RestartTaskRequest]) (*connect.Response[v1.RestartTaskResponse], error) {
	return answer(f, req, &v1.RestartTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) KillTask(_ context.Context, req *connect.Request[v1.KillTaskRequest]) (*connect.Response[v1.KillTaskResponse], error) {
	return answer(f, req, &v1.KillTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) ApproveTask(_ context.Context, req *connect.Request[v1.ApproveTaskRequest]) (*connect.Response[v1.ApproveTaskResponse], error) {
	return answer(f, req, &v1.ApproveTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) RejectTask(_ context.Context, req *connect.Request[v1.RejectTaskRequest]) (*connect.Response[v1.RejectTaskResponse], error) {
	return answer(f, req, &v1.RejectTaskResponse{Id: fakeRun})
}

func (f *fakeGateway) RetryRun(_ context.Context, req *connect.Request[v1.RetryRunRequest]) (*connect.Response[v1.RetryRunResponse], error) {
	return answer(f, req, &v1.RetryRunResponse{Id: fakeRun, Generation: 2})
}

func (f *fakeGateway) RerunRun(_ context.Context, req *connect.Request[v1.RerunRunRequest]) (*connect.Response[v1.RerunRunResponse], error) {
	return answer(f, req, &v1.RerunRunResponse{Id: "nightly-7n8p9qrs", Name: "nightly"})
}

func (f *fakeGateway) PlanRun(_ context.Context, req *connect.Request[v1.PlanRunRequest]) (*connect.Response[v1.PlanRunResponse], error) {
	return answer(f, req, f.backend.plan)
}

// ListInstances returns the instances of a task, at most three or the requested number a page.
func (f *fakeGateway) ListInstances(_ context.Context, req *connect.Request[v1.ListInstancesRequest]) (*connect.Response[v1.ListInstancesResponse], error) {
	all := f.backend.instances[req.Msg.GetTask()]
	if state := req.Msg.GetState(); state != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(i *v1.Instance) bool { return i.GetState() != state })
	}
	from, _ := strconv.Atoi(req.Msg.GetPageToken())
	from = min(max(from, int(req.Msg.GetFirst())), len(all))
	to := min(from+min(int(req.Msg.GetPageSize()), f.backend.page), len(all))
	res := &v1.ListInstancesResponse{Items: all[from:to]}
	if to < len(all) {
		res.NextPageToken = strconv.Itoa(to)
	}
	return answer(f, req, res)
}

// fakeShelf is a WorkflowService that stores definitions unchecked.
type fakeShelf struct {
	switchyardv1connect.UnimplementedWorkflowServiceHandler

	mu       sync.Mutex
	stored   map[string]*v1.Definition
	search   string // search text of the newest list request
	put      []*v1.PutWorkflowRequest
	warnings []*v1.Problem
	schedule *v1.Schedule
	fail     error
}

func (f *fakeShelf) PutWorkflow(_ context.Context, req *connect.Request[v1.PutWorkflowRequest]) (*connect.Response[v1.PutWorkflowResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put = append(f.put, req.Msg)
	if f.fail != nil {
		return nil, f.fail
	}
	return connect.NewResponse(&v1.PutWorkflowResponse{Name: "hello", Replaced: req.Msg.GetReplace(), Warnings: f.warnings, Schedule: f.schedule}), nil
}

func (f *fakeShelf) GetWorkflow(_ context.Context, req *connect.Request[v1.GetWorkflowRequest]) (*connect.Response[v1.GetWorkflowResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.stored[req.Msg.GetName()]
	if d == nil {
		return nil, f.fail
	}
	return connect.NewResponse(&v1.GetWorkflowResponse{Definition: proto.CloneOf(d), UpdatedAt: "2026-03-14T15:09:26Z"}), nil
}

func (f *fakeShelf) ListWorkflows(_ context.Context, req *connect.Request[v1.ListWorkflowsRequest]) (*connect.Response[v1.ListWorkflowsResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.search = req.Msg.GetSearch()
	res := &v1.ListWorkflowsResponse{}
	for name, d := range f.stored {
		res.Items = append(res.Items, &v1.StoredWorkflow{Name: name, Description: d.GetDescription(), A2A: d.GetA2A(), UpdatedAt: "2026-03-14T15:09:26Z", Cron: []string{"0 2 * * *"}, Timezone: "Europe/Rome", Paused: true})
	}
	slices.SortFunc(res.Items, func(x, y *v1.StoredWorkflow) int { return len(x.GetName()) - len(y.GetName()) })
	return connect.NewResponse(res), nil
}

func (f *fakeShelf) DeleteWorkflow(_ context.Context, req *connect.Request[v1.DeleteWorkflowRequest]) (*connect.Response[v1.DeleteWorkflowResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stored[req.Msg.GetName()] == nil {
		return nil, f.fail
	}
	delete(f.stored, req.Msg.GetName())
	return connect.NewResponse(&v1.DeleteWorkflowResponse{}), nil
}
