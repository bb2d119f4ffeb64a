package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"

	"google.golang.org/protobuf/types/known/structpb"
)

const (
	approveTask    = switchyardv1connect.RunServiceApproveTaskProcedure
	approveRunCall = switchyardv1connect.RunServiceApproveRunProcedure
	rejectRun      = switchyardv1connect.RunServiceRejectRunProcedure
)

func newServicesWithApprovals() *servicetest.Fake {
	f := &servicetest.Fake{}
	servicetest.Answer(f, listTasksCall, func(_ context.Context, req *v1.ListTasksRequest) (*v1.ListTasksResponse, error) {
		if req.GetPageToken() == "" { // a page may be empty although there is a next one
			return &v1.ListTasksResponse{NextPageToken: "second"}, nil
		}
		return &v1.ListTasksResponse{Items: []*v1.ListedTask{{Run: "ship-1", Workflow: "ship", Task: "ask", State: v1.TaskPaused, Error: "ship it?", StartedAt: before(time.Hour)}}}, nil
	})
	servicetest.AnswerWith(f, listRuns, &v1.ListRunsResponse{Items: []*v1.Run{{Id: "ship-1", Name: "ship", State: v1.RunPendingApproval}, {Id: "deploy-1", Name: "deploy", State: v1.RunPendingApproval, SubmittedBy: "bob", CreatedAt: before(time.Minute)}}})
	servicetest.Answer(f, getRun, func(_ context.Context, req *v1.GetRunRequest) (*v1.GetRunResponse, error) {
		if req.GetId() == "ship-1" { // waits only for its task
			return &v1.GetRunResponse{Run: &v1.Run{Id: "ship-1", SubmittedBy: "ann"}}, nil
		}
		return &v1.GetRunResponse{Run: &v1.Run{Id: "deploy-1", Approval: &v1.RunApproval{State: v1.ApprovalPending, DefinitionVersion: 2}}}, nil
	})
	servicetest.AnswerWith(f, approveTask, &v1.ApproveTaskResponse{})
	servicetest.AnswerWith(f, approveRunCall, &v1.ApproveRunResponse{})
	servicetest.AnswerWith(f, rejectRun, &v1.RejectRunResponse{})
	return f
}

func TestApprovalsShowWhatIsAskedAndByWhom(t *testing.T) {
	f := newServicesWithApprovals()
	page := newVisitor(t, f, v1.RoleUser).get("/ui/approvals")
	mustBeHarmless(t, page)
	mustContain(t, page.text("#approval-ship-1-ask"), "ask of ship-1", "ship it?", "ship", "ann", "Approve", "Reject")
	mustContain(t, page.text("#approval-deploy-1"), "run deploy-1", "may this run start?", "bob", "needs the role operator")
	if got := page.texts("#approvals tr"); len(got) != 2 {
		t.Errorf("waiting: %q", got)
	}
	if got := servicetest.Requests[v1.ListTasksRequest](f)[0]; got.GetState() != v1.TaskPaused || got.GetType() != v1.TypeApproval {
		t.Errorf("request %v", got)
	}
}

// TestApproverFillsInInputs approves a task on its page, with inputs of the types that the task declares.
func TestApproverFillsInInputs(t *testing.T) {
	f := &servicetest.Fake{}
	fakeTask(f, "ask", &v1.Task{State: v1.TaskPaused, Reason: v1.ReasonApproval, Type: v1.TypeApproval})
	spec, _ := structpb.NewStruct(map[string]any{"inputs": map[string]any{
		"count": map[string]any{"type": "integer", "required": true, "description": "How many"}, "dry": map[string]any{"type": "boolean", "default": true},
	}})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceGetRunDefinitionProcedure, &v1.GetRunDefinitionResponse{Definition: &v1.Definition{
		Tasks: map[string]*v1.TaskDefinition{"ask": {Type: v1.TypeApproval, Spec: spec}},
	}})
	servicetest.AnswerWith(f, approveTask, &v1.ApproveTaskResponse{})
	visitor := newVisitor(t, f, v1.RoleUser)
	const page = "/ui/runs/ci-1/tasks/ask"
	mustContain(t, visitor.get(page).text("#task-head"), "count", "How many", "dry")
	if refused := visitor.submit(page, "approve-task", "input.count", "many", "input.dry", "true"); refused.status != http.StatusBadRequest || !strings.Contains(refused.body, "whole number") {
		t.Errorf("a text as a number: %d %s", refused.status, refused.body)
	}
	if done := visitor.submit(page, "approve-task", "input.count", "3", "input.dry", ""); done.status != http.StatusOK {
		t.Fatalf("%d %s", done.status, done.body)
	}
	got := servicetest.Requests[v1.ApproveTaskRequest](f)
	if len(got) != 1 || got[0].GetInput().AsMap()["count"] != 3.0 || got[0].GetInput().AsMap()["dry"] != false {
		t.Errorf("requests %v", got)
	}
}
