package tunnel

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// activity returns a pending activity as Temporal describes it.
func activity(kind, id, queue string, state enumspb.PendingActivityState) *workflowpb.PendingActivityInfo {
	return &workflowpb.PendingActivityInfo{
		ActivityId: id, ActivityType: &commonpb.ActivityType{Name: kind}, State: state,
		ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}},
	}
}

func TestAttemptsAreFoundAmongActivities(t *testing.T) {
	const started, scheduled = enumspb.PENDING_ACTIVITY_STATE_STARTED, enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	got := attemptsAmong([]*workflowpb.PendingActivityInfo{
		activity(names.AwaitPlacementActivity, "build#1", "node:a:cpu", started),
		activity(names.ExecuteActivity, "build#3", "node:a:cpu", started),
		activity(names.ExecuteActivity, "test#4", "node:b:gpu", enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED),
		activity(names.ExecuteActivity, "each[2]#5", "node:a:remote", started),
		activity(names.ExecuteActivity, "later#6", "node:a:cpu", scheduled),
		activity(names.ExecuteActivity, "steered#7", "node:a:control", started),
	})
	if want := []attempt{{"build", 3, "a"}, {"test", 4, "b"}, {"each[2]", 5, "a"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHeadersOfClientsAreChecked(t *testing.T) {
	exec := &v1.SessionExec{}
	for says, header := range map[string]*v1.SessionHeader{
		"0 is not a port":     {Kind: "connect"},
		"65536 is not a port": {Kind: "listen", Port: 65536},
		"has a name of 513":   {Kind: "exec", Exec: exec, Task: strings.Repeat("x", 513)},
	} {
		if err := checkHeader(header); rpcerror.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	for _, header := range []*v1.SessionHeader{{Kind: "exec", Exec: exec}, {Kind: "listen"}} {
		if err := checkHeader(header); err != nil {
			t.Errorf("%v: %v", header, err)
		}
	}
}
