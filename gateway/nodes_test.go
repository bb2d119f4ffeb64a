package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeNodes is an in-memory registry.
type fakeNodes struct {
	nodes map[string]*v1.Node
	drain *v1.NodeDrain
	err   error // error of every call if set
}

func (f *fakeNodes) List(context.Context) ([]*v1.Node, error) {
	var all []*v1.Node
	for _, n := range f.nodes {
		all = append(all, n)
	}
	return all, f.err
}

func (f *fakeNodes) Get(_ context.Context, name string) (*v1.Node, error) {
	n := f.nodes[name]
	if n == nil && f.err == nil {
		return nil, &registry.Error{Kind: registry.ErrUnknown, Message: "unknown"}
	}
	return n, f.err
}

func (f *fakeNodes) Drain(ctx context.Context, name string, drain *v1.NodeDrain) (*v1.Node, error) {
	n, err := f.Get(ctx, name)
	if err == nil {
		n.State, f.drain = "draining", drain
	}
	return n, err
}

func (f *fakeNodes) Undrain(ctx context.Context, name string) (*v1.Node, error) {
	n, err := f.Get(ctx, name)
	if err == nil {
		n.State = "active"
	}
	return n, err
}

func (f *fakeNodes) Remove(ctx context.Context, name string) error {
	n, err := f.Get(ctx, name)
	if err == nil && n.GetState() != "offline" {
		return &registry.Error{Kind: registry.ErrState, Message: "node " + name + " is " + n.GetState()}
	}
	delete(f.nodes, name)
	return err
}

// startNodes starts a gateway with an in-memory registry.
func startNodes(t *testing.T, config Config) (switchyardv1connect.NodeServiceClient, *fixture) {
	t.Helper()
	f := startConfigured(t, "mem://", config)
	return switchyardv1connect.NewNodeServiceClient(f.httpClient(t), f.server.URL()), f
}

// TestNodesAreListedDrainedAndRemoved lists nodes page by page, and shows, drains and removes them.
func TestNodesAreListedDrainedAndRemoved(t *testing.T) {
	t.Parallel()
	nodes := &fakeNodes{nodes: map[string]*v1.Node{}}
	for i, state := range []string{"active", "stale", "active", "offline", "draining"} {
		name := fmt.Sprintf("n%d", i)
		nodes.nodes[name] = &v1.Node{Name: name, State: state, Running: int32(i), Snapshot: &v1.NodeSnapshot{Name: name}}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, _ := startNodes(t, Config{Nodes: nodes, Now: func() time.Time { return now }})
	list := func(req *v1.ListNodesRequest) (all []string) {
		for {
			res, err := c.ListNodes(t.Context(), connect.NewRequest(req))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range res.Msg.GetItems() {
				if n.GetSnapshot() != nil {
					t.Errorf("a list holds the snapshot of %s", n.GetName())
				}
				all = append(all, n.GetName())
			}
			if want := map[string]int32{"": 5, "active": 2}[req.GetState()]; res.Msg.GetTotal() != want {
				t.Errorf("the total of nodes in state %q is %d, want %d", req.GetState(), res.Msg.GetTotal(), want)
			}
			if req.PageToken = res.Msg.GetNextPageToken(); req.PageToken == "" {
				return all
			}
			all = append(all, "|")
		}
	}
	if got := list(&v1.ListNodesRequest{}); !slices.Equal(got, []string{"n0", "n1", "n2", "n3", "n4"}) {
		t.Errorf("got %v", got)
	}
	if got := list(&v1.ListNodesRequest{PageSize: 2}); !slices.Equal(got, []string{"n0", "n1", "|", "n2", "n3", "|", "n4"}) {
		t.Errorf("got %v", got)
	}
	if got := list(&v1.ListNodesRequest{State: "active", PageSize: 1}); !slices.Equal(got, []string{"n0", "|", "n2"}) {
		t.Errorf("active are %v", got)
	}
	got, err := c.GetNode(t.Context(), connect.NewRequest(&v1.GetNodeRequest{Name: "n1"}))
	if err != nil || !proto.Equal(got.Msg.GetNode(), nodes.nodes["n1"]) {
		t.Errorf("got %v, %v", got, err)
	}
	drained, err := c.DrainNode(t.Context(), connect.NewRequest(&v1.DrainNodeRequest{Name: "n0", Deadline: durationpb.New(time.Minute), Reason: "fan"}))
	if err != nil || drained.Msg.GetNode().GetState() != "draining" || nodes.drain.GetDeadline().AsTime() != now.Add(time.Minute) || nodes.drain.GetReason() != "fan" {
		t.Errorf("got %v, %v and %v", drained, err, nodes.drain)
	}
	if _, err := c.DrainNode(t.Context(), connect.NewRequest(&v1.DrainNodeRequest{Name: "n0"})); err != nil || nodes.drain.GetDeadline() != nil {
		t.Errorf("a drain without a deadline is %v, %v", nodes.drain, err)
	}
	_, err = c.DrainNode(t.Context(), connect.NewRequest(&v1.DrainNodeRequest{Name: "n0", Deadline: durationpb.New(-time.Second)}))
	wantCode(t, "a deadline in the past", err, connect.CodeInvalidArgument)
	undrained, err := c.UndrainNode(t.Context(), connect.NewRequest(&v1.UndrainNodeRequest{Name: "n0"}))
	if err != nil || undrained.Msg.GetNode().GetState() != "active" {
		t.Errorf("got %v, %v", undrained, err)
	}
	_, err = c.RemoveNode(t.Context(), connect.NewRequest(&v1.RemoveNodeRequest{Name: "n0"}))
	wantCode(t, "remove a node that is up", err, connect.CodeAborted)
	if _, err := c.RemoveNode(t.Context(), connect.NewRequest(&v1.RemoveNodeRequest{Name: "n3"})); err != nil || nodes.nodes["n3"] != nil {
		t.Errorf("removed: %v", err)
	}
	for _, name := range []string{"n3", "no-such", "No Such", "x' OR 'a' = 'a"} {
		_, err = c.GetNode(t.Context(), connect.NewRequest(&v1.GetNodeRequest{Name: name}))
		wantCode(t, "get "+name, err, connect.CodeNotFound)
		_, err = c.DrainNode(t.Context(), connect.NewRequest(&v1.DrainNodeRequest{Name: name}))
		wantCode(t, "drain "+name, err, connect.CodeNotFound)
		_, err = c.UndrainNode(t.Context(), connect.NewRequest(&v1.UndrainNodeRequest{Name: name}))
		wantCode(t, "undrain "+name, err, connect.CodeNotFound)
		_, err = c.RemoveNode(t.Context(), connect.NewRequest(&v1.RemoveNodeRequest{Name: name}))
		wantCode(t, "remove "+name, err, connect.CodeNotFound)
	}
	nodes.err = &registry.Error{Kind: registry.ErrNoControl, Message: "nobody"}
	_, err = c.DrainNode(t.Context(), connect.NewRequest(&v1.DrainNodeRequest{Name: "n0"}))
	wantCode(t, "drain without a control process", err, connect.CodeUnavailable)
}

func TestGatewayReadsTheRegistryInTemporalByDefault(t *testing.T) {
	t.Parallel()
	f := start(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := switchyardv1connect.NewNodeServiceClient(&http.Client{Transport: transport}, f.server.URL())
	if res, err := c.ListNodes(t.Context(), connect.NewRequest(&v1.ListNodesRequest{})); err != nil || len(res.Msg.GetItems()) != 0 {
		t.Errorf("got %v, %v", res, err)
	}
	_, err := c.GetNode(t.Context(), connect.NewRequest(&v1.GetNodeRequest{Name: "a"}))
	wantCode(t, "a node that is not there", err, connect.CodeNotFound)
}
