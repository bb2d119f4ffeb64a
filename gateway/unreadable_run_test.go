package gateway

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestUnreadableRunIsLeftOutOfLists checks that lists skip a run whose input is not a RunInput, and name it in a
// warning.
func TestUnreadableRunIsLeftOutOfLists(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "readable", "build")
	set(t, id, "build", 1, &v1.Task{State: "completed"})
	end(t, id, "completed")
	bad := names.NewRunID("unreadable")
	letters := temporal.NewSearchAttributeKeyInt64(names.DeadLettersAttribute)
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: bad, TaskQueue: names.ControlQueue, TypedSearchAttributes: temporal.NewSearchAttributes(letters.ValueSet(1)),
	}, names.RunWorkflow, "x")
	if err != nil {
		t.Fatal(err)
	}
	waitClosed(t, bad)
	named := func(warnings []string) bool {
		return strings.Contains(strings.Join(warnings, "\n"), "run "+bad)
	}
	eventually(t, "the list of all events names the run", func() bool {
		req := &v1.ListRunEventsRequest{PageSize: 1000}
		for {
			res, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(req))
			if err != nil {
				t.Fatal(err)
			}
			if req.PageToken = res.Msg.GetNextPageToken(); named(res.Msg.GetWarnings()) || req.GetPageToken() == "" {
				return named(res.Msg.GetWarnings())
			}
		}
	})
	eventually(t, "the list of dead letters names the run", func() bool {
		res, err := f.client.ListDeadLetters(t.Context(), connect.NewRequest(&v1.ListDeadLettersRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return named(res.Msg.GetWarnings())
	})
	if _, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: bad})); err == nil || !strings.Contains(err.Error(), "not that of a run") {
		t.Errorf("the run itself: %v", err)
	}
}
