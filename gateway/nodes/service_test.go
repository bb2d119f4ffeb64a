package nodes

import (
	"strings"
	"testing"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

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
