package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/registry"
	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// fakeRegistry is a registry in memory.
type fakeRegistry struct {
	nodes map[string]*v1.Node
	drain *historyv1.NodeDrain
	terms *historyv1.NodeTermsChange
	err   error // error of every call if set
}

func (f *fakeRegistry) List(context.Context) (all []*v1.Node, err error) {
	for _, n := range f.nodes {
		all = append(all, n)
	}
	return all, f.err
}

func (f *fakeRegistry) Get(_ context.Context, name string) (*v1.Node, error) {
	if f.err == nil && f.nodes[name] == nil {
		return nil, &registry.Error{Kind: registry.ErrUnknown, Message: "unknown"}
	}
	return f.nodes[name], f.err
}

func (f *fakeRegistry) Drain(ctx context.Context, name string, drain *historyv1.NodeDrain) (*v1.Node, error) {
	n, err := f.Get(ctx, name)
	if err == nil {
		n.State, f.drain = v1.NodeDraining, drain
	}
	return n, err
}

func (f *fakeRegistry) Undrain(ctx context.Context, name string) (*v1.Node, error) {
	n, err := f.Get(ctx, name)
	if err == nil {
		n.State = v1.NodeActive
	}
	return n, err
}

func (f *fakeRegistry) SetTerms(ctx context.Context, name string, change *historyv1.NodeTermsChange) (*v1.Node, error) {
	f.terms = change
	return f.Get(ctx, name)
}

func (f *fakeRegistry) RemoveDead(ctx context.Context, name string) (int, error) {
	if _, err := f.Get(ctx, name); err != nil {
		return 0, err
	}
	delete(f.nodes, name)
	return 2, nil
}

func (f *fakeRegistry) Remove(ctx context.Context, name string) error {
	n, err := f.Get(ctx, name)
	if err == nil && n.GetState() != v1.NodeOffline {
		return &registry.Error{Kind: registry.ErrState, Message: "node " + name + " is " + n.GetState()}
	}
	delete(f.nodes, name)
	return err
}

// TestNodesAreListedDrainedAndRemoved lists nodes page by page, and shows, drains and removes them.
func TestNodesAreListedDrainedAndRemoved(t *testing.T) {
	t.Parallel()
	known := &fakeRegistry{nodes: map[string]*v1.Node{}}
	for i, state := range []string{v1.NodeActive, v1.NodeStale, v1.NodeActive, v1.NodeOffline, v1.NodeDraining} {
		name := fmt.Sprintf("n%d", i)
		known.nodes[name] = &v1.Node{Name: name, State: state, Running: int32(i), Snapshot: &v1.NodeSnapshot{Name: name}}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := Service{Registry: known, Now: func() time.Time { return now }}
	ctx := auth.With(t.Context(), &auth.Principal{Role: v1.Role_ROLE_ADMIN, Kind: auth.KindNone})
	for _, test := range []struct {
		req   *v1.ListNodesRequest
		want  string
		total int32
	}{
		{&v1.ListNodesRequest{}, "n0 n1 n2 n3 n4", 5},
		{&v1.ListNodesRequest{PageSize: 2}, "n0 n1 | n2 n3 | n4", 5},
		{&v1.ListNodesRequest{State: v1.NodeActive, PageSize: 1}, "n0 | n2", 2},
	} {
		var got []string
		for i, page := range servicetest.Pages(t, ctx, s.ListNodes, test.req) {
			if i > 0 {
				got = append(got, "|")
			}
			for _, n := range page.GetItems() {
				if n.GetSnapshot() != nil {
					t.Errorf("a list holds the snapshot of %s", n.GetName())
				}
				got = append(got, n.GetName())
			}
			if page.GetTotal() != test.total {
				t.Errorf("%v has the total %d", test.req, page.GetTotal())
			}
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%v: got %s, want %s", test.req, text, test.want)
		}
	}
	if got, err := s.GetNode(ctx, connect.NewRequest(&v1.GetNodeRequest{Name: "n1"})); err != nil || !proto.Equal(got.Msg.GetNode(), known.nodes["n1"]) {
		t.Errorf("got %v, %v", got, err)
	}
	drain := func(name string, deadline *durationpb.Duration) (*connect.Response[v1.DrainNodeResponse], error) {
		return s.DrainNode(ctx, connect.NewRequest(&v1.DrainNodeRequest{Name: name, Deadline: deadline, Reason: "fan"}))
	}
	if drained, err := drain("n0", durationpb.New(time.Minute)); err != nil || drained.Msg.GetNode().GetState() != v1.NodeDraining || known.drain.GetDeadline().AsTime() != now.Add(time.Minute) || known.drain.GetReason() != "fan" {
		t.Errorf("got %v, %v and %v", drained, err, known.drain)
	}
	if _, err := drain("n0", nil); err != nil || known.drain.GetDeadline() != nil {
		t.Errorf("a drain without a deadline is %v, %v", known.drain, err)
	}
	if undrained, err := s.UndrainNode(ctx, connect.NewRequest(&v1.UndrainNodeRequest{Name: "n0"})); err != nil || undrained.Msg.GetNode().GetState() != v1.NodeActive {
		t.Errorf("got %v, %v", undrained, err)
	}
	remove := func(name string) error {
		_, err := s.RemoveNode(ctx, connect.NewRequest(&v1.RemoveNodeRequest{Name: name}))
		return err
	}
	if err := remove("n0"); rpcerror.CodeOf(err) != connect.CodeAborted {
		t.Errorf("remove a node that is up: %v", err)
	}
	if err := remove("n3"); err != nil || known.nodes["n3"] != nil {
		t.Errorf("removed: %v", err)
	}
	if res, err := s.RemoveNode(ctx, connect.NewRequest(&v1.RemoveNodeRequest{Name: "n1", Dead: true})); err != nil || res.Msg.GetLostAttempts() != 2 {
		t.Errorf("remove a dead node: %v, %v", res, err)
	}
	for _, name := range []string{"n3", "no-such", "No Such", "x' OR 'a' = 'a"} {
		_, get := s.GetNode(ctx, connect.NewRequest(&v1.GetNodeRequest{Name: name}))
		_, draining := drain(name, nil)
		_, undrain := s.UndrainNode(ctx, connect.NewRequest(&v1.UndrainNodeRequest{Name: name}))
		for i, err := range []error{get, draining, undrain, remove(name)} {
			if rpcerror.CodeOf(err) != connect.CodeNotFound {
				t.Errorf("call %d for %s: %v", i, name, err)
			}
		}
	}
	known.err = &registry.Error{Kind: registry.ErrNoControl, Message: "nobody"}
	if _, err := drain("n0", nil); rpcerror.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("drain without a control process: %v", err)
	}
}

func TestNodesHideRunsFromUsers(t *testing.T) {
	t.Parallel()
	node := &v1.Node{Name: "gpu-1", Snapshot: &v1.NodeSnapshot{
		Running: []*v1.RunningAttempt{{RunId: "ci-0k", Task: "build", Cores: 2}},
		Claims:  &v1.ClaimFigures{Active: []*v1.ActiveClaim{{RunId: "ci-0k", TaskId: "build", Status: v1.TaskRunning}}},
	}}
	for role, shown := range map[v1.Role]bool{v1.Role_ROLE_VIEWER: false, v1.Role_ROLE_USER: false, v1.Role_ROLE_OPERATOR: true, v1.Role_ROLE_ADMIN: true} {
		got := forCaller(auth.With(t.Context(), &auth.Principal{Name: "ann", Role: role, Kind: auth.KindToken}), node)
		if strings.Contains(got.String(), "ci-0k") != shown || strings.Contains(got.String(), "build") != shown || got.GetSnapshot().GetRunning()[0].GetCores() != 2 {
			t.Errorf("%s: %v", role, got)
		}
	}
	if node.GetSnapshot().GetRunning()[0].GetRunId() != "ci-0k" {
		t.Error("the node itself was changed")
	}
}

func TestTermsOfANodeAreSet(t *testing.T) {
	t.Parallel()
	known := &fakeRegistry{nodes: map[string]*v1.Node{"n": {Name: "n"}}}
	s := Service{Registry: known, Now: time.Now}
	for _, test := range []struct {
		req  *v1.SetNodeTermsRequest
		code connect.Code // 0 if the request is accepted
	}{
		{&v1.SetNodeTermsRequest{Name: "n", Terms: &v1.NodeTerms{KeptFor: []string{"label=a", "gpu"}, WhileGaming: "refuse"}}, 0},
		{&v1.SetNodeTermsRequest{Name: "n", Clear: true}, 0},
		{&v1.SetNodeTermsRequest{Name: "n", Terms: &v1.NodeTerms{}}, connect.CodeInvalidArgument},
		{&v1.SetNodeTermsRequest{Name: "n", Terms: &v1.NodeTerms{Hours: []string{"night"}}}, connect.CodeInvalidArgument},
		{&v1.SetNodeTermsRequest{Name: "other", Clear: true}, connect.CodeNotFound},
	} {
		known.terms = nil
		_, err := s.SetNodeTerms(t.Context(), connect.NewRequest(test.req))
		if (err == nil) != (test.code == 0) || err != nil && rpcerror.CodeOf(err) != test.code {
			t.Errorf("%v: %v", test.req, err)
		}
		if test.code == 0 && (known.terms.GetClear() != test.req.GetClear() || !slices.IsSorted(known.terms.GetTerms().GetKeptFor())) {
			t.Errorf("%v: %v", test.req, known.terms)
		}
	}
}
