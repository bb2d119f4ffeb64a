package gateway

import (
	"context"
	"maps"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// totals returns the number of runs in each state.
func (f *fixture) totals(t *testing.T, req *v1.ListRunsRequest) map[string]int32 {
	t.Helper()
	req.Totals = true
	res := answer(t, f.client.ListRuns, req)
	if len(res.GetTotals()) != len(v1.RunStates()) {
		t.Errorf("the states with totals are %v", res.GetTotals())
	}
	maps.DeleteFunc(res.Totals, func(_ string, n int32) bool { return n == 0 })
	return res.GetTotals()
}

// startedUnworked starts a run whose search attributes no worker changes.
func startedUnworked(t *testing.T, a visibility.Attributes) {
	t.Helper()
	id := names.NewRunID(a.Workflow)
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: "no-worker", TypedSearchAttributes: a.Typed(),
	}, names.RunWorkflow, &v1.RunInput{Definition: &v1.Definition{Name: a.Workflow}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := temporalClient.TerminateWorkflow(context.Background(), id, "", "the test is over"); err != nil {
			t.Error(err)
		}
	})
}

// TestTotalsCountEachRunOnceInItsState counts runs in all states, including one with three generations.
func TestTotalsCountEachRunOnceInItsState(t *testing.T) {
	t.Parallel()
	f := start(t)
	const name = "counted"
	if got := f.totals(t, &v1.ListRunsRequest{Name: name}); len(got) > 0 {
		t.Errorf("without runs there are %v", got)
	}
	ended := map[string]string{}
	for _, state := range []string{"completed", "failed", "cancelled"} {
		ended[state] = f.submit(t, name, "a")
		end(t, ended[state], state)
	}
	for _, state := range []string{v1.RunPending, v1.RunPendingApproval, v1.RunRunning, v1.RunRunning, v1.RunPaused} {
		known := visibility.Started(name, v1.TriggerSubmit, time.Now())
		known.State, known.Labels = state, []string{"gpu", "zone"}
		startedUnworked(t, known)
	}
	want := map[string]int32{"pending": 1, "pending_approval": 1, "running": 2, "paused": 1, "completed": 1, "failed": 1, "cancelled": 1}
	equal := func(what string, req *v1.ListRunsRequest, want map[string]int32) {
		t.Helper()
		var got map[string]int32
		eventually(t, what, func() bool { got = f.totals(t, req); return maps.Equal(got, want) })
	}
	equal("each state has its runs", &v1.ListRunsRequest{Name: name}, want)
	equal("the state of the filter and the page do not matter", &v1.ListRunsRequest{Name: name, State: "failed", PageSize: 1}, want)
	equal("the other filters do", &v1.ListRunsRequest{Name: name, Label: "gpu"}, map[string]int32{"pending": 1, "pending_approval": 1, "running": 2, "paused": 1})
	equal("no run is of another owner", &v1.ListRunsRequest{Name: name, Owner: "bea"}, map[string]int32{})

	again := ended["failed"]
	if _, err := f.retryRun(t, again); err != nil {
		t.Fatal(err)
	}
	want["failed"], want["running"] = 0, 3
	maps.DeleteFunc(want, func(_ string, n int32) bool { return n == 0 })
	equal("the run that was retried is open", &v1.ListRunsRequest{Name: name}, want)
	end(t, again, "cancelled")
	want["running"], want["cancelled"] = 2, 2
	equal("its second generation was cancelled", &v1.ListRunsRequest{Name: name}, want)
	if _, err := f.retryRun(t, again); err != nil {
		t.Fatal(err)
	}
	end(t, again, "completed")
	want["cancelled"], want["completed"] = 1, 2
	equal("its third generation has completed", &v1.ListRunsRequest{Name: name}, want)
	equal("its first generation does not count", &v1.ListRunsRequest{Name: name, Trigger: v1.TriggerRetry}, map[string]int32{"completed": 1})

	first, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Name: name, PageSize: 2, Totals: true}))
	if err != nil {
		t.Fatal(err)
	}
	next, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Name: name, PageSize: 2, PageToken: first.Msg.GetNextPageToken()}))
	if err != nil || len(next.Msg.GetTotals()) > 0 {
		t.Errorf("the next page, not counted: %v, %v", next, err)
	}
}
