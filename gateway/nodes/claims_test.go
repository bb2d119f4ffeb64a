package nodes

import (
	"testing"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

func TestWorkerCountsExceedTheBoundedClaimList(t *testing.T) {
	t.Parallel()
	got := workersOf("n", &v1.NodeSnapshot{Claims: &v1.ClaimFigures{
		TakenUp: 310, Ended: map[string]int32{v1.TaskCompleted: 4, v1.TaskFailed: 2, v1.AttemptMoved: 3}, LeasesExpired: 1,
		Active: []*v1.ActiveClaim{{RunId: "a-1", Status: v1.TaskAssigned}, {RunId: "a-2", Status: v1.TaskRunning}},
	}})
	want := &v1.GetNodeWorkersResponse{
		Address: "n", TotalClaimedTasks: 307, RunningClaims: 301, ExpiredLeases: 1, TotalClaimAttempts: 310, ActiveClaims: got.GetActiveClaims(),
		ClaimedByStatus: map[string]int32{v1.TaskCompleted: 4, v1.TaskFailed: 2, v1.AttemptMoved: 3, v1.TaskAssigned: 1, v1.TaskRunning: 300},
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if nothing := workersOf("n", nil); nothing.GetTotalClaimedTasks() != 0 || nothing.GetRunningClaims() != 0 || len(nothing.GetClaimedByStatus()) != 0 {
		t.Errorf("of nothing: %v", nothing)
	}
}
