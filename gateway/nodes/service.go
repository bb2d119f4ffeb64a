package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/registry"
	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
	"switchyard/workflows/policy"
)

// Registry is the node registry. Its methods may be called concurrently and are idempotent. Their errors are those of
// activities/registry.
type Registry interface {
	// List returns the nodes, in any order, with or without snapshots.
	List(ctx context.Context) ([]*v1.Node, error)
	// Get returns a node with its snapshot.
	Get(ctx context.Context, name string) (*v1.Node, error)
	// Drain takes a node out of service, or changes the terms of its drain.
	Drain(ctx context.Context, name string, drain *historyv1.NodeDrain) (*v1.Node, error)
	// Undrain puts a node back into service.
	Undrain(ctx context.Context, name string) (*v1.Node, error)
	// SetTerms sets or clears terms on which a node takes tasks.
	SetTerms(ctx context.Context, name string, change *historyv1.NodeTermsChange) (*v1.Node, error)
	// Remove deletes an offline node from the registry.
	Remove(ctx context.Context, name string) error
	// RemoveDead deletes a silent node that is known to be dead, and ends the leases of its attempts. It returns how many there
	// were.
	RemoveDead(ctx context.Context, name string) (attempts int, err error)
}

// Service implements NodeService. It is safe for concurrent use.
type Service struct {
	Registry Registry
	Now      func() time.Time
}

var _ switchyardv1connect.NodeServiceHandler = Service{}

// defaultPage is the number of nodes on a page if the request names no size.
const defaultPage = 1000

// ListNodes lists the nodes by name.
func (s Service) ListNodes(ctx context.Context, req *connect.Request[v1.ListNodesRequest]) (*connect.Response[v1.ListNodesResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	first, err := pages.DecodeNode(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	nodes, err := s.Registry.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultPage
	}
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *v1.Node) int { return strings.Compare(a.GetName(), b.GetName()) })
	nodes = slices.DeleteFunc(nodes, func(n *v1.Node) bool { return req.Msg.GetState() != "" && n.GetState() != req.Msg.GetState() })
	res := &v1.ListNodesResponse{Total: int32(len(nodes))}
	for _, n := range nodes {
		if n.GetName() < first {
			continue
		}
		if len(res.Items) == limit {
			res.NextPageToken = pages.EncodeNode(n.GetName())
			break
		}
		res.Items = append(res.Items, withoutSnapshot(n))
	}
	return connect.NewResponse(res), nil
}

// withoutSnapshot returns a node without its snapshot, as lists show it.
func withoutSnapshot(n *v1.Node) *v1.Node {
	if n.GetSnapshot() == nil {
		return n
	}
	listed := proto.CloneOf(n)
	listed.Snapshot = nil
	return listed
}

// GetNode returns a node with its snapshot.
func (s Service) GetNode(ctx context.Context, req *connect.Request[v1.GetNodeRequest]) (*connect.Response[v1.GetNodeResponse], error) {
	var n *v1.Node
	err := onNode("look at", req.Msg.GetName(), func(name string) (err error) {
		n, err = s.Registry.Get(ctx, name)
		return err
	})
	return connect.NewResponse(&v1.GetNodeResponse{Node: forCaller(ctx, n)}), err
}

// forCaller returns a node with the names of running tasks blanked out, unless the caller may see all runs.
func forCaller(ctx context.Context, n *v1.Node) *v1.Node {
	if n.GetSnapshot() == nil || auth.From(ctx).SeesAll() {
		return n
	}
	shown := proto.CloneOf(n)
	for _, attempt := range shown.GetSnapshot().GetRunning() {
		attempt.RunId, attempt.Task, attempt.Owner, attempt.Workflow = "", "", "", ""
	}
	for _, claim := range shown.GetSnapshot().GetClaims().GetActive() {
		claim.RunId, claim.TaskId = "", ""
	}
	return shown
}

// DrainNode takes a node out of service. It returns when the registry has accepted the request, not when the node is
// empty.
func (s Service) DrainNode(ctx context.Context, req *connect.Request[v1.DrainNodeRequest]) (*connect.Response[v1.DrainNodeResponse], error) {
	drain := &historyv1.NodeDrain{Reason: req.Msg.GetReason(), By: auth.From(ctx).Name}
	if d := req.Msg.GetDeadline(); d != nil {
		drain.Deadline = timestamppb.New(s.Now().Add(d.AsDuration()))
	}
	var n *v1.Node
	err := onNode("drain", req.Msg.GetName(), func(name string) (err error) {
		n, err = s.Registry.Drain(ctx, name, drain)
		return err
	})
	return connect.NewResponse(&v1.DrainNodeResponse{Node: n}), err
}

// UndrainNode puts a node back into service.
func (s Service) UndrainNode(ctx context.Context, req *connect.Request[v1.UndrainNodeRequest]) (*connect.Response[v1.UndrainNodeResponse], error) {
	var n *v1.Node
	err := onNode("undrain", req.Msg.GetName(), func(name string) (err error) {
		n, err = s.Registry.Undrain(ctx, name)
		return err
	})
	return connect.NewResponse(&v1.UndrainNodeResponse{Node: n}), err
}

// SetNodeTerms sets or clears terms on which a node takes tasks.
func (s Service) SetNodeTerms(ctx context.Context, req *connect.Request[v1.SetNodeTermsRequest]) (*connect.Response[v1.SetNodeTermsResponse], error) {
	change := &historyv1.NodeTermsChange{Terms: req.Msg.GetTerms(), Clear: req.Msg.GetClear()}
	switch err := policy.CheckTerms(change.GetTerms()); {
	case err != nil:
		return nil, rpcerror.Invalid("%s", err)
	case !change.GetClear() && proto.Size(change.GetTerms()) == 0:
		return nil, rpcerror.Invalid("the request sets no terms and clears none")
	}
	slices.Sort(change.GetTerms().GetKeptFor())
	var n *v1.Node
	err := onNode("set terms of", req.Msg.GetName(), func(name string) (err error) {
		n, err = s.Registry.SetTerms(ctx, name, change)
		return err
	})
	return connect.NewResponse(&v1.SetNodeTermsResponse{Node: n}), err
}

// RemoveNode deletes a node from the registry that is offline, or that the caller knows to be dead.
func (s Service) RemoveNode(ctx context.Context, req *connect.Request[v1.RemoveNodeRequest]) (*connect.Response[v1.RemoveNodeResponse], error) {
	res := &v1.RemoveNodeResponse{}
	err := onNode("remove", req.Msg.GetName(), func(name string) error {
		if !req.Msg.GetDead() {
			return s.Registry.Remove(ctx, name)
		}
		attempts, err := s.Registry.RemoveDead(ctx, name)
		res.LostAttempts = int32(attempts)
		return err
	})
	return connect.NewResponse(res), err
}

// onNode calls do with a valid node name and maps errors of the registry to those that clients see.
func onNode(what, name string, do func(name string) error) error {
	if !names.IsNode(name) {
		return rpcerror.NoNode(name)
	}
	err := do(name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, registry.ErrUnknown):
		return rpcerror.NoNode(name)
	case rpcerror.Is[*registry.Error](err):
		return connect.NewError(rpcerror.CodeOf(err), err)
	}
	return fmt.Errorf("%s node %s: %w", what, name, err)
}
