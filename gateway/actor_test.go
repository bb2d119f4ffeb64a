package gateway

import (
	"testing"

	"connectrpc.com/connect"
	commonpb "go.temporal.io/api/common/v1"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestActorHeaderIsMarkedUnverified checks that the name that a client claims is recorded with its actions, marked as
// unverified and sanitised so that it cannot pass as verified.
func TestActorHeaderIsMarkedUnverified(t *testing.T) {
	t.Parallel()
	f := start(t)
	for claim, want := range map[string]string{
		"":                        "",
		" ann@laptop ":            "ann@laptop (unverified)",
		"ann\t(verified) @laptop": "annverified @laptop (unverified)",
		"\xffann":                 "ann (unverified)",
		"\u202eann":               "ann (unverified)",
	} {
		submit := connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("claimed", "a")}})
		submit.Header().Set(names.ActorHeader, claim)
		res, err := f.client.SubmitRun(t.Context(), submit)
		if err != nil {
			t.Fatal(err)
		}
		id := res.Msg.GetId()
		in, err := f.reader.Input(t.Context(), &commonpb.WorkflowExecution{WorkflowId: id})
		if err != nil || in.GetBy() != want {
			t.Errorf("%q submits as %q, %v", claim, in.GetBy(), err)
		}
		cancel := connect.NewRequest(&v1.CancelRunRequest{Id: id, Reason: "enough"})
		cancel.Header().Set(names.ActorHeader, claim)
		if _, err := f.client.CancelRun(t.Context(), cancel); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the run is told who cancels it", func() bool {
			run := f.get(t, id)
			return run.GetState() == "cancelled" && run.GetError() == want+"enough"
		})
	}
}
