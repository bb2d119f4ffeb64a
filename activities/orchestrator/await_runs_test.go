package orchestrator

import (
	"testing"

	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// TestEndOfFailedRunHasItsFinalReason checks that a later execution of a parent learns that its child would fail again.
func TestEndOfFailedRunHasItsFinalReason(t *testing.T) {
	t.Parallel()
	details, err := converter.GetDefaultDataConverter().ToPayloads(&v1.StatusResponse{Run: &v1.Run{State: v1.RunFailed}, FinalReason: v1.ReasonExpression})
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
	want := &v1.RunEnd{Status: v1.RunEndFailed, State: v1.RunFailed, Error: "m", FinalReason: v1.ReasonExpression}
	if !proto.Equal(got, want) {
		t.Errorf("the end is %v, want %v", got, want)
	}
}
