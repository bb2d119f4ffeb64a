package nodeaccess

import (
	"testing"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/dev/testneeds"
	"switchyard/workflows/names"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// activity returns a pending activity as Temporal describes it.
func activity(kind, id, queue string, state enumspb.PendingActivityState) *workflowpb.PendingActivityInfo {
	return &workflowpb.PendingActivityInfo{
		ActivityId: id, ActivityType: &commonpb.ActivityType{Name: kind}, State: state,
		ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}},
	}
}

func TestAttemptIsFoundAmongActivities(t *testing.T) {
	const started, scheduled = enumspb.PENDING_ACTIVITY_STATE_STARTED, enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	pending := []*workflowpb.PendingActivityInfo{
		activity(names.AwaitPlacementActivity, "build#1", "node:a:cpu", started),
		activity(names.ExecuteActivity, "build#3", "node:a:cpu", started),
		activity(names.ExecuteActivity, "test#4", "node:a:gpu", enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED),
		activity(names.ExecuteActivity, "each[2]#5", "node:a:cpu", started), // a batch of this and other instances
		activity(names.ExecuteActivity, "later#6", "node:a:cpu", scheduled),
		activity(names.ExecuteActivity, "far#7", "node:a:b:cpu", started),
	}
	for of, want := range map[Attempt]bool{
		{Node: "a", Task: "build", Claim: 3}: true, {Node: "a", Task: "build", Claim: -1}: true, {Node: "a", Task: "test", Claim: 4}: true,
		{Node: "a", Task: "each[2]", Claim: 5}: true, {Node: "a", Task: "each", Claim: -1}: true, {Node: "a", Claim: -1}: true,
		{Node: "a", Task: "build", Claim: 1}: false, {Node: "a", Task: "build", Claim: 2}: false, {Node: "b", Task: "build", Claim: 3}: false,
		{Node: "a", Task: "each[3]", Claim: 5}: false, {Node: "a", Task: "each", Claim: 5}: false, {Node: "a", Task: "later", Claim: 6}: false,
		{Node: "a", Task: "far", Claim: 7}: false, {Node: "", Task: "build", Claim: 3}: false, {Node: "b", Claim: -1}: false,
	} {
		if got := of.isAmong(pending); got != want {
			t.Errorf("%+v: %t", of, got)
		}
	}
}
