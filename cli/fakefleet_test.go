package cli

import (
	"context"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeFleet is a scripted NodeService.
type fakeFleet struct {
	switchyardv1connect.UnimplementedNodeServiceHandler

	mu    sync.Mutex
	asked []proto.Message
	list  *v1.ListNodesResponse
	// looks holds the replies of GetNode in order; the last one repeats.
	looks []*v1.Node
	fail  error // error of the next call
}

// take records a request and returns the error that the script sets for it.
func (f *fakeFleet) take(req proto.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, req)
	err := f.fail
	f.fail = nil
	return err
}

func (f *fakeFleet) look() *v1.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.looks[0]
	if len(f.looks) > 1 {
		f.looks = f.looks[1:]
	}
	return n
}

func (f *fakeFleet) ListNodes(_ context.Context, req *connect.Request[v1.ListNodesRequest]) (*connect.Response[v1.ListNodesResponse], error) {
	return connect.NewResponse(f.list), f.take(req.Msg)
}

func (f *fakeFleet) GetNode(_ context.Context, req *connect.Request[v1.GetNodeRequest]) (*connect.Response[v1.GetNodeResponse], error) {
	if err := f.take(req.Msg); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.GetNodeResponse{Node: f.look()}), nil
}

func (f *fakeFleet) DrainNode(_ context.Context, req *connect.Request[v1.DrainNodeRequest]) (*connect.Response[v1.DrainNodeResponse], error) {
	if err := f.take(req.Msg); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.DrainNodeResponse{Node: f.look()}), nil
}

func (f *fakeFleet) UndrainNode(_ context.Context, req *connect.Request[v1.UndrainNodeRequest]) (*connect.Response[v1.UndrainNodeResponse], error) {
	return connect.NewResponse(&v1.UndrainNodeResponse{Node: &v1.Node{Name: req.Msg.GetName(), State: "active"}}), f.take(req.Msg)
}

func (f *fakeFleet) RemoveNode(_ context.Context, req *connect.Request[v1.RemoveNodeRequest]) (*connect.Response[v1.RemoveNodeResponse], error) {
	return connect.NewResponse(&v1.RemoveNodeResponse{}), f.take(req.Msg)
}

// fakeBackend holds what a fakeGateway serves besides runs.
type fakeBackend struct {
	asked   []proto.Message
	letters *v1.ListDeadLettersResponse
	retried *v1.RetryDeadLetterResponse
	purged  *v1.PurgeDeadLetterResponse
	events  *v1.ListRunEventsResponse
	// moreEvents is the page after events, or nil if every page is events.
	moreEvents *v1.ListRunEventsResponse
	explained  *v1.ExplainTaskResponse
	plan       *v1.PlanRunResponse
	// instances of tasks, served at most page at a time.
	instances map[string][]*v1.Instance
	page      int
}

func answer[Req any, Res any, P interface {
	*Req
	proto.Message
}](f *fakeGateway, req *connect.Request[Req], res *Res) (*connect.Response[Res], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backend.asked = append(f.backend.asked, P(req.Msg))
	if f.fail != nil {
		return nil, f.fail
	}
	return connect.NewResponse(res), nil
}

func (f *fakeGateway) ListDeadLetters(_ context.Context, req *connect.Request[v1.ListDeadLettersRequest]) (*connect.Response[v1.ListDeadLettersResponse], error) {
	return answer(f, req, f.backend.letters)
}

func (f *fakeGateway) RetryDeadLetter(_ context.Context, req *connect.Request[v1.RetryDeadLetterRequest]) (*connect.Response[v1.RetryDeadLetterResponse], error) {
	return answer(f, req, f.backend.retried)
}

func (f *fakeGateway) PurgeDeadLetter(_ context.Context, req *connect.Request[v1.PurgeDeadLetterRequest]) (*connect.Response[v1.PurgeDeadLetterResponse], error) {
	return answer(f, req, f.backend.purged)
}

func (f *fakeGateway) ListRunEvents(_ context.Context, req *connect.Request[v1.ListRunEventsRequest]) (*connect.Response[v1.ListRunEventsResponse], error) {
	page := f.backend.events
	if req.Msg.GetPageToken() == page.GetNextPageToken() && f.backend.moreEvents != nil {
		page = f.backend.moreEvents
	}
	return answer(f, req, page)
}

func (f *fakeGateway) ExplainTask(_ context.Context, req *connect.Request[v1.ExplainTaskRequest]) (*connect.Response[v1.ExplainTaskResponse], error) {
	return answer(f, req, f.backend.explained)
}
