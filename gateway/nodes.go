package gateway

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/registry"
	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// Nodes is the node registry. Its methods may be called concurrently and are idempotent. Their errors are those of
// activities/registry.
type Nodes interface {
	// List returns the nodes, in any order, with or without snapshots.
	List(ctx context.Context) ([]*v1.Node, error)
	// Get returns a node with its snapshot.
	Get(ctx context.Context, name string) (*v1.Node, error)
	// Drain takes a node out of service, or changes the terms of its drain.
	Drain(ctx context.Context, name string, drain *v1.NodeDrain) (*v1.Node, error)
	// Undrain puts a node back into service.
	Undrain(ctx context.Context, name string) (*v1.Node, error)
	// Remove deletes an offline node from the registry.
	Remove(ctx context.Context, name string) error
}

// defaultNodePage is the number of nodes on a page if the request names no size.
const defaultNodePage = 1000

// nodeNameText matches valid node names.
var nodeNameText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`) })

// nodeService implements NodeService.
type nodeService struct{ *Gateway }

var _ switchyardv1connect.NodeServiceHandler = nodeService{}

// ListNodes lists the nodes by name.
func (s nodeService) ListNodes(ctx context.Context, req *connect.Request[v1.ListNodesRequest]) (*connect.Response[v1.ListNodesResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	first, err := pages.DecodeNode(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	nodes, err := s.nodes.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultNodePage
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
func (s nodeService) GetNode(ctx context.Context, req *connect.Request[v1.GetNodeRequest]) (*connect.Response[v1.GetNodeResponse], error) {
	var n *v1.Node
	err := onNode("look at", req.Msg.GetName(), func(name string) (err error) {
		n, err = s.nodes.Get(ctx, name)
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
		attempt.RunId, attempt.Task = "", ""
	}
	for _, claim := range shown.GetSnapshot().GetClaims().GetActive() {
		claim.RunId, claim.TaskId = "", ""
	}
	return shown
}

// GetNodeWorkers returns the claim statistics of a node's worker since it started.
func (s nodeService) GetNodeWorkers(ctx context.Context, req *connect.Request[v1.GetNodeWorkersRequest]) (*connect.Response[v1.GetNodeWorkersResponse], error) {
	name := req.Msg.GetName()
	var n *v1.Node
	err := onNode("look at", name, func(name string) (err error) {
		n, err = s.nodes.Get(ctx, name)
		return err
	})
	if err != nil && rpcerror.CodeOf(err) != connect.CodeNotFound {
		return nil, err
	}
	return connect.NewResponse(workersOf(name, forCaller(ctx, n).GetSnapshot())), nil
}

// workersOf returns the claim statistics in a node's snapshot. The number of running claims is the claimed ones minus the
// ended ones, because the list of active claims is bounded.
func workersOf(name string, snapshot *v1.NodeSnapshot) *v1.GetNodeWorkersResponse {
	claims := snapshot.GetClaims()
	res := &v1.GetNodeWorkersResponse{
		Address: name, ObservedAt: snapshot.GetTakenAt(), Since: claims.GetSince(), ClaimedByStatus: map[string]int32{},
		RunningClaims: claims.GetTakenUp(), TotalClaimedTasks: claims.GetTakenUp() - claims.GetEnded()[v1.AttemptMoved],
		ExpiredLeases: claims.GetLeasesExpired(), TotalClaimAttempts: claims.GetTakenUp(), LastActivityAt: claims.GetLastActivityAt(),
		ActiveClaims: claims.GetActive(),
	}
	for status, count := range claims.GetEnded() {
		res.ClaimedByStatus[status] += count
		res.RunningClaims -= count
	}
	waiting := int32(0)
	for _, claim := range claims.GetActive() {
		if claim.GetStatus() == v1.TaskAssigned {
			waiting++
		}
	}
	for status, count := range map[string]int32{v1.TaskAssigned: waiting, v1.TaskRunning: res.GetRunningClaims() - waiting} {
		if count > 0 {
			res.ClaimedByStatus[status] += count
		}
	}
	return res
}

// DrainNode takes a node out of service. It returns when the registry has accepted the request, not when the node is
// empty.
func (s nodeService) DrainNode(ctx context.Context, req *connect.Request[v1.DrainNodeRequest]) (*connect.Response[v1.DrainNodeResponse], error) {
	drain := &v1.NodeDrain{Reason: req.Msg.GetReason(), By: actor(ctx)}
	if d := req.Msg.GetDeadline(); d != nil {
		drain.Deadline = timestamppb.New(s.config.Now().Add(d.AsDuration()))
	}
	var n *v1.Node
	err := onNode("drain", req.Msg.GetName(), func(name string) (err error) {
		n, err = s.nodes.Drain(ctx, name, drain)
		return err
	})
	return connect.NewResponse(&v1.DrainNodeResponse{Node: n}), err
}

// UndrainNode puts a node back into service.
func (s nodeService) UndrainNode(ctx context.Context, req *connect.Request[v1.UndrainNodeRequest]) (*connect.Response[v1.UndrainNodeResponse], error) {
	var n *v1.Node
	err := onNode("undrain", req.Msg.GetName(), func(name string) (err error) {
		n, err = s.nodes.Undrain(ctx, name)
		return err
	})
	return connect.NewResponse(&v1.UndrainNodeResponse{Node: n}), err
}

// RemoveNode deletes an offline node from the registry.
func (s nodeService) RemoveNode(ctx context.Context, req *connect.Request[v1.RemoveNodeRequest]) (*connect.Response[v1.RemoveNodeResponse], error) {
	err := onNode("remove", req.Msg.GetName(), func(name string) error { return s.nodes.Remove(ctx, name) })
	return connect.NewResponse(&v1.RemoveNodeResponse{}), err
}

// onNode calls do with a valid node name and maps errors of the registry to those that clients see.
func onNode(what, name string, do func(name string) error) error {
	if !nodeNameText().MatchString(name) {
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
