package runretry

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

// muteRuns is a server whose runs do not answer queries.
type muteRuns struct{ client.Client }

func mute(id string) *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "1"}, Type: &commonpb.WorkflowType{Name: names.RunWorkflow},
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
}

func (muteRuns) DescribeWorkflowExecution(_ context.Context, id, _ string) (*runview.Description, error) {
	return &runview.Description{WorkflowExecutionInfo: mute(id)}, nil
}

func (muteRuns) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

func (muteRuns) QueryWorkflow(ctx context.Context, _, _, _ string, _ ...any) (converter.EncodedValue, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestDeadLettersDoNotWaitLongForMuteRuns checks that the list waits for a run that does not answer as long as other lists do.
func TestDeadLettersDoNotWaitLongForMuteRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := runview.NewReader(muteRuns{}, "default", nil, slog.New(slog.DiscardHandler))
		d, began := deadLetters{reader: reader, letters: letterReader{reader: reader}}, time.Now()
		letters, warnings, err := d.readAll(t.Context(), []*workflowpb.WorkflowExecutionInfo{mute("a"), mute("b")})
		if err != nil || len(letters) != 0 || len(warnings) != 2 || !strings.Contains(warnings[0], "does not answer") {
			t.Errorf("%v, %q, %v", letters, warnings, err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
