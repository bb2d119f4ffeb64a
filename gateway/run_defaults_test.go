package gateway

import (
	"testing"
	"time"

	"connectrpc.com/connect"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// TestRunsGetTheDefaultsOfTheFleet checks that submitted and scheduled runs are started with the defaults of the fleet.
func TestRunsGetTheDefaultsOfTheFleet(t *testing.T) {
	t.Parallel()
	g := startConfigured(t, "mem://", Config{Defaults: definition.RunDefaults{Timeout: time.Hour, FailurePolicy: "halt", PickupTimeout: time.Minute}})
	hasDefaults := func(what string, in *v1.RunInput) {
		t.Helper()
		if def := in.GetDefinition(); def.GetTasks()["a"].GetTimeout() != "1h0m0s" || def.GetFailurePolicy() != "halt" || in.GetOptions().GetPickupTimeout().AsDuration() != time.Minute {
			t.Errorf("%s starts with %v", what, in)
		}
	}
	text := document("filled", "a")
	in, _, err := g.submitter.Prepare(t.Context(), &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: text}})
	if err != nil {
		t.Fatal(err)
	}
	hasDefaults("a run that is submitted", in)
	put := connect.NewRequest(&v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: text}})
	if _, err := g.workflows.PutWorkflow(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	described, err := temporalClient.ScheduleClient().GetHandle(t.Context(), names.StoredWorkflowID("filled")).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in = &v1.RunInput{}
	action := described.Schedule.Action.(*client.ScheduleWorkflowAction)
	if err := converter.GetDefaultDataConverter().FromPayload(action.Args[0].(*commonpb.Payload), in); err != nil {
		t.Fatal(err)
	}
	hasDefaults("a run of a schedule", in)

	if _, err := New(Config{Client: temporalClient, Store: g.config.Store, Defaults: definition.RunDefaults{Timeout: -1}}); err == nil {
		t.Error("a negative time-out is allowed")
	}
}
