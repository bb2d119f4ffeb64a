package web

import (
	"net/http"
	"net/url"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/phrase"
)

// TestPageEndsFinallyOnlyIfAsked checks that Cancel, also that of a page from before finally began, does not end finally, and that another
// button does.
func TestPageEndsFinallyOnlyIfAsked(t *testing.T) {
	const page = "/ui/runs/nightly-1"
	f, run := &servicetest.Fake{}, exampleRun()
	run.Generation = 2
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceCancelRunProcedure, &v1.CancelRunResponse{Id: "nightly-1"})
	serveRun(f, run) <- &v1.WatchRunResponse{Run: proto.CloneOf(run), TaskCount: 4}
	v := newVisitor(t, f, v1.RoleUser)
	shown := v.get(page)
	if len(shown.all(`form[action="/ui/actions/cancel-finally"]`)) > 0 {
		t.Error("the page can cancel finally, which has not begun")
	}
	form := v.formOf(shown, "cancel-run", nil)
	form.Set(confirmedField, yes)
	press := func(verb string, form url.Values, status int) {
		t.Helper()
		if a := v.do(http.MethodPost, "/ui/actions/"+verb, form, "application/json"); a.status != status {
			t.Errorf("%s: %d %s", verb, a.status, a.body)
		}
	}
	press("cancel-run", form, http.StatusOK)
	press("cancel-run", form, http.StatusOK)
	sent := servicetest.Requests[v1.CancelRunRequest](f)
	if len(sent) != 2 || sent[0].GetRequestId() == "" || !proto.Equal(sent[0], sent[1]) || sent[0].GetNow() {
		t.Fatalf("requests %v", sent)
	}

	begun := proto.CloneOf(run)
	begun.Error = phrase.InFinally(v1.RunCancelled, "cancelled by ann")
	begun.Tasks["clean"] = &v1.Task{State: v1.TaskRunning, Type: "shell", Finally: true, Node: "a", AssignedAt: after(30), StartedAt: after(30)}
	serveRun(f, begun) <- &v1.WatchRunResponse{Run: proto.CloneOf(begun), TaskCount: 5}
	press("cancel-run", form, http.StatusConflict)
	v = newVisitor(t, f, v1.RoleUser)
	shown = v.get(page)
	if len(shown.all(`form[action="/ui/actions/cancel-run"]`)) > 0 {
		t.Error("the page can cancel what has ended")
	}
	mustContain(t, shown.text("#n-clean"), "finally")
	mustContain(t, shown.text("#t-clean .lane-note"), "finally")
	form = v.formOf(shown, "cancel-finally", nil)
	mustContain(t, v.do(http.MethodPost, "/ui/actions/cancel-finally", form, "text/html").text("main"), "tasks of it that have not begun do not run")
	form.Set(confirmedField, yes)
	press("cancel-finally", form, http.StatusOK)
	if sent := servicetest.Requests[v1.CancelRunRequest](f); len(sent) != 3 || !sent[2].GetNow() {
		t.Errorf("requests %v", sent)
	}
}
