package registry

import (
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

func TestNodeWithAnUnreadableRecordIsOffline(t *testing.T) {
	t.Parallel()
	broken := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/protobuf")}, Data: []byte("{")}
	e := entryOf("n1", &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{names.NodeMemo: broken}},
	}})
	state, reason := e.State(0, "")
	if e.Record.GetName() != "n1" || state != v1.NodeOffline || !strings.HasPrefix(reason, "its record cannot be read: ") {
		t.Errorf("%v is %s: %s", e.Record, state, reason)
	}
}

func TestNodeWithAnUnreadableHeartbeatIsOffline(t *testing.T) {
	t.Parallel()
	activity := &workflowpb.PendingActivityInfo{
		ActivityType:     &commonpb.ActivityType{Name: names.HeartbeatActivity},
		HeartbeatDetails: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("{")}}},
	}
	e := entryOf("n1", &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: []*workflowpb.PendingActivityInfo{activity}})
	if state, reason := e.State(0, ""); state != v1.NodeOffline || !strings.HasPrefix(reason, "its heartbeat cannot be read: ") {
		t.Errorf("the node is %s: %s", state, reason)
	}
}

func TestWorkerThatIsTooOldForTheFleet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reads   int32 // 0 is a worker that knows no levels
		written int
		want    bool
	}{{0, 1, false}, {1, 1, false}, {2, 1, false}, {0, 2, true}, {1, 2, true}, {2, 2, false}, {2, 3, true}} {
		if got := isTooOld(&historyv1.NodeRegistration{DataLevel: test.reads}, test.written); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}
