package nodes

import (
	"context"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// GetNodeWorkers returns the claim statistics of a node's worker since it started.
func (s Service) GetNodeWorkers(ctx context.Context, req *connect.Request[v1.GetNodeWorkersRequest]) (*connect.Response[v1.GetNodeWorkersResponse], error) {
	name := req.Msg.GetName()
	var n *v1.Node
	err := onNode("look at", name, func(name string) (err error) {
		n, err = s.Registry.Get(ctx, name)
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
