package web

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	listRuns = switchyardv1connect.RunServiceListRunsProcedure
	getRun   = switchyardv1connect.RunServiceGetRunProcedure
)

// before returns the time d before testNow.
func before(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(testNow.Add(-d)) }

func TestRunsShowStateAndProgress(t *testing.T) { patiently(t, runsShowStateAndProgress) }

func runsShowStateAndProgress(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, listRuns, &v1.ListRunsResponse{
		Items: []*v1.Run{
			{Id: "build-1", Name: "build", State: v1.RunRunning, SubmittedBy: "ann", Trigger: v1.TriggerSubmit, Problem: "no node has a GPU", CreatedAt: before(time.Minute)},
			{Id: "deploy-2", Name: "deploy", State: v1.RunFailed, Trigger: v1.TriggerChild, Parent: "build-1", CreatedAt: before(time.Hour), CompletedAt: before(time.Hour - 65*time.Second)},
		},
		Totals: map[string]int32{v1.RunRunning: 3, v1.RunFailed: 1}, NextPageToken: "more",
	})
	servicetest.Answer(f, getRun, func(_ context.Context, req *v1.GetRunRequest) (*v1.GetRunResponse, error) {
		if req.GetId() == "build-1" {
			return &v1.GetRunResponse{Run: &v1.Run{TaskCounts: map[string]int32{v1.TaskCompleted: 1, v1.TaskRunning: 1}, InstanceCounts: map[string]int32{v1.TaskRunning: 12}}}, nil
		}
		return &v1.GetRunResponse{Run: &v1.Run{Error: "task \"push\" failed:\x1b[31m exit code 1", TaskCounts: map[string]int32{v1.TaskFailed: 1}}}, nil
	})
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/runs?trigger=&name=")
	mustBeHarmless(t, page)
	mustContain(t, page.text("#run-build-1"), "running", "build-1", "no node has a GPU", "ann submit", "1 completed, 1 running", "12 instances: 12 running")
	mustContain(t, page.text("#run-deploy-2"), "✗ failed", `task "push" failed: exit code 1`, "child of build-1", "1m05s", "1 failed")
	mustContain(t, page.text("#run-tabs"), "all 4", "running 3", "completed 0")
	if next, run := page.link("Next page"), page.link("build-1"); next != "/ui/runs?page=more" || run != "/ui/runs/build-1" {
		t.Errorf("the next page is %q, the run %q", next, run)
	}
	for _, n := range page.all("#runs tr") {
		if !strings.HasPrefix(attribute(n, "id"), "run-") {
			t.Errorf("a row without an id: %s", textOf(n))
		}
	}
}

func TestRunsAreFilteredAsInTheAPI(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, listRuns, &v1.ListRunsResponse{})
	v := newVisitor(t, f, v1.RoleViewer)
	page := v.get("/ui/runs?state=failed&name=build&text=gpu&owner=ann&node=n1&type=shell&label=gpu&trigger=child&batch=b&parent=p-1&since=24h&page=tok")
	got := servicetest.Requests[v1.ListRunsRequest](f)[0]
	if got.GetState() != "failed" || got.GetName() != "build" || got.GetText() != "gpu" || got.GetOwner() != "ann" || got.GetNode() != "n1" || got.GetType() != "shell" ||
		got.GetLabel() != "gpu" || got.GetTrigger() != "child" || got.GetBatch() != "b" || got.GetParent() != "p-1" || got.GetPageToken() != "tok" ||
		!got.GetSince().AsTime().Equal(testNow.Add(-24*time.Hour)) || !got.GetTotals() {
		t.Errorf("request %v", got)
	}
	if len(page.all("details[open]")) != 1 || attribute(page.all(`input[name="since"]`)[0], "value") != "24h" || textOf(page.all("option[selected]")[0]) != "child" {
		t.Error("the form does not show the filters")
	}
	if attribute(page.all("#run-tabs a[aria-current]")[0], "href") == "" || page.link("First page") == "" {
		t.Error("no current tab, or no link to the first page")
	}
	mustContain(t, page.text("#runs-end"), "No more runs on this page.")
	mustContain(t, v.get("/ui/runs?name=x").text("#runs-end"), "No run matches.")
	mustContain(t, v.get("/ui/runs").text("#runs-end"), "There are no runs yet.", "switchyard submit")
}
