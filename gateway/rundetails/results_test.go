package rundetails

import (
	"testing"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/testneeds"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// TestRunHasWhatItsAttemptsReport checks that GetRun returns the notices and workloads that attempts report in their heartbeats,
// and their leases.
func TestRunHasWhatItsAttemptsReport(t *testing.T) {
	t.Parallel()
	details, err := converter.GetDefaultDataConverter().ToPayloads(&historyv1.ExecuteProgress{Spawned: true, Claim: 1, Notice: "waits", Workload: &v1.Workload{Pid: 7}})
	if err != nil {
		t.Fatal(err)
	}
	v := runview.NewView("r")
	v.Update([]*historyv1.StatusResponse{{
		Run:    &v1.Run{Tasks: map[string]*v1.Task{"a": {State: v1.TaskAssigned, Node: "n"}}},
		Claims: map[string]int32{"a": 1}, TaskCount: 1,
	}}, runview.RunningAttempts([]*workflowpb.PendingActivityInfo{{
		ActivityId: "a#1", ActivityType: &commonpb.ActivityType{Name: names.ExecuteActivity},
		State: enumspb.PENDING_ACTIVITY_STATE_STARTED, HeartbeatDetails: details,
		LastStartedTime: timestamppb.New(time.Unix(100, 0)), LastHeartbeatTime: timestamppb.New(time.Unix(200, 0)),
		ActivityOptions: &activitypb.ActivityOptions{HeartbeatTimeout: durationpb.New(15 * time.Second)},
	}}, time.Unix(201, 0)))
	for _, brief := range []bool{true, false} {
		if task := (results{}).task(t.Context(), v, "a", brief); task.GetState() != v1.TaskRunning || task.GetNotice() != "waits" || task.GetWorkload().GetPid() != 7 || task.GetLeaseUntil().GetSeconds() != 215 {
			t.Errorf("brief %v: %v", brief, task)
		}
	}
}
