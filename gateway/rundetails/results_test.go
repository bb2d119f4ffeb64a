package rundetails

import (
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"switchyard/dev/testneeds"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// TestRunHasTheNoticesOfItsAttempts checks that GetRun returns the notices that attempts report in their
// heartbeats.
func TestRunHasTheNoticesOfItsAttempts(t *testing.T) {
	t.Parallel()
	details, err := converter.GetDefaultDataConverter().ToPayloads(&v1.ExecuteProgress{Spawned: true, Claim: 1, Notice: "waits"})
	if err != nil {
		t.Fatal(err)
	}
	v := runview.NewView("r")
	v.Update([]*v1.StatusResponse{{
		Run:    &v1.Run{Tasks: map[string]*v1.Task{"a": {State: v1.TaskAssigned, Node: "n"}}},
		Claims: map[string]int32{"a": 1}, TaskCount: 1,
	}}, runview.RunningAttempts([]*workflowpb.PendingActivityInfo{{
		ActivityId: "a#1", ActivityType: &commonpb.ActivityType{Name: names.ExecuteActivity},
		State: enumspb.PENDING_ACTIVITY_STATE_STARTED, HeartbeatDetails: details,
	}}, time.Now()))
	for _, brief := range []bool{true, false} {
		if task := (results{}).task(t.Context(), v, "a", brief); task.GetState() != v1.TaskRunning || task.GetNotice() != "waits" {
			t.Errorf("brief %v: %v", brief, task)
		}
	}
}
