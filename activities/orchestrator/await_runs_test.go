package orchestrator

import (
	"testing"

	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestEndOfFailedRunHasItsFinalReason checks that a later execution of a parent learns that its child would fail again.
func TestEndOfFailedRunHasItsFinalReason(t *testing.T) {
	t.Parallel()
	details, err := converter.GetDefaultDataConverter().ToPayloads(&historyv1.StatusResponse{Run: &v1.Run{State: v1.RunFailed}, FinalReason: v1.ReasonExpression})
	if err != nil {
		t.Fatal(err)
	}
	got := endOf(&historypb.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
			WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{
				Message: "m", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Details: details}},
			}},
		},
	})
	want := &historyv1.RunEnd{Status: v1.RunEndFailed, State: v1.RunFailed, Error: "m", FinalReason: v1.ReasonExpression}
	if !proto.Equal(got, want) {
		t.Errorf("the end is %v, want %v", got, want)
	}
}

// TestEndOfDeletedRunIsTheOneInItsStore checks that a run that the server no longer knows has ended as its last final status says,
// and that the end of a run without one is not repeated.
func TestEndOfDeletedRunIsTheOneInItsStore(t *testing.T) {
	t.Parallel()
	kept, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &Children{Store: kept}
	for generation, state := range []string{v1.RunFailed, v1.RunCompleted} {
		status := &historyv1.StatusResponse{Run: &v1.Run{State: state, Generation: int32(generation)}}
		if err := kept.PutMessage(t.Context(), storekey.Status(names.Home("child", "first"), int32(generation)), status); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.storedEnd(t.Context(), &historyv1.AwaitedRun{WorkflowId: "child", First: "first"})
	want := &historyv1.RunEnd{Status: v1.RunEndCompleted, State: v1.RunCompleted, Generation: 1, Chain: "first"}
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("the end is %v, want %v, error %v", got, want, err)
	}
	for _, first := range []string{"", "other"} {
		got, err := c.storedEnd(t.Context(), &historyv1.AwaitedRun{WorkflowId: "child", First: first})
		if err != nil || got.GetStatus() != "" || got.GetFinalReason() != v1.ReasonSystem {
			t.Errorf("the end of an unknown run is %v, error %v", got, err)
		}
	}
}
