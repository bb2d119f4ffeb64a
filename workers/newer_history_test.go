package workers_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protowire"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// TestRunOfANewerProgramWaits starts runs that a newer program would have started. Their workflow tasks fail, and the runs stay open.
func TestRunOfANewerProgramWaits(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	const unknownParts = " was written by a newer Switchyard, and has parts that this one does not know; upgrade this program"
	part := &historyv1.RunInput{}
	part.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 9999, protowire.VarintType), 1))
	packed, err := definition.PackMessage(part)
	if err != nil {
		t.Fatal(err)
	}
	next := historyv1.ReadableDataLevel() + 1
	for name, test := range map[string]struct {
		payload *commonpb.Payload
		want    string
	}{
		"level": {
			&commonpb.Payload{Metadata: map[string][]byte{"switchyard-data-level": fmt.Append(nil, next)}, Data: []byte("{}")},
			fmt.Sprintf("the input of the run has the data level %d, and this Switchyard understands %d; start that version or a later one instead", next, next-1),
		},
		"field": {&commonpb.Payload{Metadata: map[string][]byte{}, Data: []byte(`{"definition": {"name": "a", "afterwards": {}}}`)}, "the input of the run" + unknownParts},
		"packed field": {
			&commonpb.Payload{Metadata: map[string][]byte{}, Data: fmt.Appendf(nil, `{"packed": %q}`, base64.StdEncoding.EncodeToString(packed))},
			"a packed part of the run" + unknownParts,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.payload.Metadata[converter.MetadataEncoding] = []byte(converter.MetadataEncodingProtoJSON)
			run, err := y.Conn.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
				ID: "newer-" + strings.ReplaceAll(name, " ", "-"), TaskQueue: names.ControlQueue, WorkflowTaskTimeout: time.Second,
			}, names.RunWorkflow, converter.NewRawValue(test.payload))
			if err != nil {
				t.Fatal(err)
			}
			var failure string
			workertest.Eventually(t, "the workflow task has failed", func() bool {
				events := y.Conn.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
				for events.HasNext() {
					event, err := events.Next()
					if err != nil {
						t.Fatal(err)
					}
					if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil {
						failure = failed.GetFailure().GetMessage()
					}
				}
				return failure != ""
			})
			if !strings.Contains(failure, test.want) {
				t.Errorf("the failure is %q, want %q", failure, test.want)
			}
			d, err := y.Conn.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
			if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				t.Errorf("the run is %s, %v", d.GetWorkflowExecutionInfo().GetStatus(), err)
			}
		})
	}
}
