package gateway

import (
	"testing"
	"time"

	"connectrpc.com/connect"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestListsShowOwnRuns lists, searches and follows runs as two users and an operator.
func TestListsShowOwnRuns(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	clients, tokens, ids := map[string]switchyardv1connect.RunServiceClient{}, map[string]string{}, map[string]string{}
	for name, role := range map[string]string{"carol": v1.RoleUser, "dave": v1.RoleUser, "chief": v1.RoleOperator} {
		tokens[name], _ = f.token(t, name, role)
		clients[name] = f.dialAs(t, tokens[name])
	}
	began := time.Now()
	follower, _ := f.openStream(t, "/v1/events", "Authorization", "Bearer "+tokens["dave"])
	for _, name := range []string{"dave", "carol"} {
		req := submitRequest(document("owned", "build"))
		req.IdempotencyKey = "nightly"
		res := do(t, clients[name].SubmitRun, req)
		if res.GetExisted() {
			t.Errorf("%s, with a key that another has used: %v", name, res)
		}
		ids[name] = res.GetId()
		terminate(t, res.GetId())
	}
	events := func(name string, kinds ...string) {
		t.Helper()
		res := &historyv1.EventsResponse{Events: []*v1.Event{happening(time.Now(), 0, "", v1.EventSubmitted)}}
		for n, kind := range kinds {
			res.Events = append(res.Events, happening(time.Now(), n+1, "build", kind))
		}
		signal(t, ids[name], eventsSignal, res)
	}
	events("carol", v1.EventQueued)
	events("dave", v1.EventQueued)
	listed := func(name string, req *v1.ListRunsRequest) map[string]bool {
		t.Helper()
		req.Name = "owned"
		found := map[string]bool{}
		for _, run := range answer(t, clients[name].ListRuns, req).GetItems() {
			found[run.GetId()] = true
		}
		return found
	}
	eventually(t, "the operator sees both runs", func() bool { return len(listed("chief", &v1.ListRunsRequest{})) == 2 })
	for _, name := range []string{"carol", "dave"} {
		for what, req := range map[string]*v1.ListRunsRequest{"all": {}, "those in a state": {State: v1.RunRunning}, "by type": {Type: v1.TypeShell}} {
			if found := listed(name, req); len(found) > 1 || len(found) == 1 && !found[ids[name]] || len(found) == 0 && what == "all" {
				t.Errorf("%s lists %s: %v, and has %s", name, what, found, ids[name])
			}
		}
		if last := answer(t, clients[name].GetRun, &v1.GetRunRequest{Id: "last"}).GetRun(); last.GetId() != ids[name] {
			t.Errorf("the last run of %s: %v", name, last)
		}
		for _, e := range answer(t, clients[name].ListRunEvents, &v1.ListRunEventsRequest{PageSize: 100}).GetItems() {
			if e.GetRun() != ids[name] {
				t.Errorf("%s reads an event of %s", name, e.GetRun())
			}
		}
	}
	if found := listed("carol", &v1.ListRunsRequest{Owner: "dave"}); len(found) > 0 {
		t.Errorf("carol lists runs of dave: %v", found)
	}
	// A later round of the feed has read the events of both users.
	got := follower.readUntil(t, 2, ids["dave"])
	events("dave", v1.EventQueued, v1.EventAssigned)
	got = append(got, follower.readUntil(t, 1, ids["dave"])...)
	if others := eventsOf(t, got, ids["carol"]); len(others) > 0 {
		t.Errorf("dave follows events of carol: %v", others)
	}
	// A later stream replays only the events that the caller may see.
	later, _ := f.openStream(t, "/v1/events?since="+began.UTC().Format(time.RFC3339Nano), "Authorization", "Bearer "+tokens["carol"])
	if others := eventsOf(t, later.readUntil(t, 1, ids["carol"]), ids["dave"]); len(others) > 0 {
		t.Errorf("carol is sent events of dave: %v", others)
	}
	// A new generation that an operator starts still belongs to the owner.
	end(t, ids["dave"], "failed")
	do(t, clients["chief"].RetryRun, &v1.RetryRunRequest{Id: ids["dave"]})
	if run := answer(t, clients["dave"].GetRun, &v1.GetRunRequest{Id: ids["dave"]}).GetRun(); run.GetGeneration() != 1 {
		t.Errorf("after a retry by an operator: %v", run)
	}
	refused(t, "carol reads the run of dave", clients["carol"].GetRun, &v1.GetRunRequest{Id: ids["dave"]}, connect.CodeNotFound)
}
