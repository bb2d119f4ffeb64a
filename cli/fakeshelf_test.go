package cli

import (
	"context"
	"slices"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

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
