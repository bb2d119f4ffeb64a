package gateway

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestRunKeepsOwnerAndBatch checks that the runs of a batch are found together with their owners. A copy of a run
// belongs to the same batch and to the caller who made it; a retried run keeps its owner.
func TestRunKeepsOwnerAndBatch(t *testing.T) {
	t.Parallel()
	f := start(t)
	submit := connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("swept", "a")}, Batch: "night-7"})
	submit.Header().Set(names.ActorHeader, "ann@laptop")
	first, err := f.client.SubmitRun(t.Context(), submit)
	if err != nil {
		t.Fatal(err)
	}
	rerun := connect.NewRequest(&v1.RerunRunRequest{Id: first.Msg.GetId()})
	rerun.Header().Set(names.ActorHeader, "bob")
	second, err := f.client.RerunRun(t.Context(), rerun)
	if err != nil {
		t.Fatal(err)
	}
	end(t, first.Msg.GetId(), "failed")
	retry := connect.NewRequest(&v1.RetryRunRequest{Id: first.Msg.GetId()})
	retry.Header().Set(names.ActorHeader, "bob")
	if _, err := f.client.RetryRun(t.Context(), retry); err != nil {
		t.Fatal(err)
	}
	if in := f.inputOf(t, first.Msg.GetId()); in.GetGeneration() != 1 || in.GetBatch() != "night-7" {
		t.Errorf("the next generation was started with %v", in)
	}
	for owner, want := range map[string][]string{
		"ann@laptop": {first.Msg.GetId()}, "bob": {second.Msg.GetId()}, "": {second.Msg.GetId(), first.Msg.GetId()},
	} {
		var got []*v1.Run
		eventually(t, "the runs of "+owner+" are listed", func() bool {
			got = answer(t, f.client.ListRuns, &v1.ListRunsRequest{Batch: "night-7", Owner: owner}).GetItems()
			return len(got) == len(want)
		})
		for _, run := range got {
			if !slices.Contains(want, run.GetId()) || run.GetBatch() != "night-7" || owner != "" && run.GetSubmittedBy() != owner+auth.Unverified {
				t.Errorf("of %q there is %v", owner, run)
			}
		}
	}
	for _, bad := range []string{"a b", "-a", "a'b", strings.Repeat("a", 64)} {
		_, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
			Source: &v1.SubmitRunRequest_Document{Document: document("swept", "a")}, Batch: bad,
		}))
		wantCode(t, "the batch "+bad, err, connect.CodeInvalidArgument)
	}
	for _, id := range []string{first.Msg.GetId(), second.Msg.GetId()} {
		end(t, id, "completed")
	}
}
