package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

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
	servicetest.AnswerWith(f, getRunDefinition, &v1.GetRunDefinitionResponse{Definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"ask": {Type: v1.TypeApproval}}}})
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

// approvalDefinition returns a definition whose task ask is of type approval with a spec.
func approvalDefinition(t *testing.T, spec map[string]any) *v1.GetRunDefinitionResponse {
	t.Helper()
	fields, err := structpb.NewStruct(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &v1.GetRunDefinitionResponse{Definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"ask": {Type: v1.TypeApproval, Spec: fields}}}}
}

const getRunDefinition = switchyardv1connect.RunServiceGetRunDefinitionProcedure

// TestApproverFillsInInputs approves a task on its page, as a browser without script does.
func TestApproverFillsInInputs(t *testing.T) {
	f := &servicetest.Fake{}
	fakeTask(f, "ask", &v1.Task{State: v1.TaskPaused, Reason: v1.ReasonApproval, Type: v1.TypeApproval})
	servicetest.AnswerWith(f, getRunDefinition, approvalDefinition(t, map[string]any{"inputs": map[string]any{
		"count":  map[string]any{"type": "integer", "required": true, "description": "How many"},
		"ticket": map[string]any{"pattern": "OPS-[0-9]+", "default": "OPS-1"},
		"region": map[string]any{"enum": []any{"eu", "us"}, "required": true},
		"dry":    map[string]any{"type": "boolean", "default": true},
	}}))
	servicetest.AnswerWith(f, approveTask, &v1.ApproveTaskResponse{})
	visitor := newVisitor(t, f, v1.RoleUser)
	const address = "/ui/runs/ci-1/tasks/ask"
	page := visitor.get(address)
	mustContain(t, page.text("#approve"), "count", "How many", "default OPS-1", "choose eu us", "dry")
	if forms := page.all(`form[action="/ui/actions/approve-task"]`); len(forms) > 0 {
		t.Error("the page also has a button that fills in nothing")
	}
	refused := visitor.send(page, address, "approve", "input.count", "many", "input.ticket", "x", "input.region", "eu", "reason", "looks well")
	if refused.status != http.StatusUnprocessableEntity || attribute(refused.all(`input[name="reason"]`)[0], "value") != "looks well" {
		t.Errorf("a text as a number: %d %s", refused.status, refused.text("main"))
	}
	mustContain(t, refused.text("#approve"), "Nothing was approved", "whole number")
	if shape := attribute(refused.all("body")[0], "data-shape"); shape != attribute(page.all("body")[0], "data-shape") {
		t.Errorf("the page with the problems has the shape %q, so that an update reloads it", shape)
	}
	refused = visitor.send(refused, address, "approve", "input.count", "3", "input.region", "")
	mustContain(t, refused.text("#approve"), "see the problems at the inputs", "it must match OPS-[0-9]+", "input region is missing")
	if notes := refused.texts(".field .error-note"); len(notes) != 2 {
		t.Errorf("the problems beside the fields are %q", notes)
	}
	if done := visitor.send(refused, address, "approve", "input.ticket", "OPS-12", "input.region", "us", "input.dry", ""); done.status != http.StatusSeeOther {
		t.Fatalf("%d %s", done.status, done.text("main"))
	}
	got := servicetest.Requests[v1.ApproveTaskRequest](f)
	if len(got) != 1 || got[0].GetReason() != "looks well" {
		t.Fatalf("requests %v", got)
	}
	if want := map[string]any{"count": 3.0, "ticket": "OPS-12", "region": "us", "dry": false}; !maps.Equal(got[0].GetInput().AsMap(), want) {
		t.Errorf("the input is %v, want %v", got[0].GetInput(), want)
	}
}

// TestApprovalsLeadToTheFormOfATaskThatAsksForInputs also checks that the list does so where it cannot read what a task asks.
func TestApprovalsLeadToTheFormOfATaskThatAsksForInputs(t *testing.T) {
	f := newServicesWithApprovals()
	servicetest.Answer(f, getRunDefinition, func(context.Context, *v1.GetRunDefinitionRequest) (*v1.GetRunDefinitionResponse, error) {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("the store is away"))
	})
	if to := newVisitor(t, f, v1.RoleUser).get("/ui/approvals").link("Approve"); to != "/ui/runs/ship-1/tasks/ask#approve" {
		t.Errorf("without the definition: %q", to)
	}
	servicetest.AnswerWith(f, getRunDefinition, approvalDefinition(t, map[string]any{"inputs": map[string]any{"tag": map[string]any{}}}))
	row := newVisitor(t, f, v1.RoleUser).get("/ui/approvals")
	if to := row.link("Approve"); to != "/ui/runs/ship-1/tasks/ask#approve" || len(row.all(`#approval-ship-1-ask form[action="/ui/actions/approve-task"]`)) > 0 {
		t.Errorf("the row is %s", row.text("#approval-ship-1-ask"))
	}
	servicetest.AnswerWith(f, getRunDefinition, approvalDefinition(t, map[string]any{"message": "Go?"}))
	newVisitor(t, f, v1.RoleUser).submit("/ui/approvals", "approve-task", "task", "ask")
	if n := len(servicetest.Requests[v1.ApproveTaskRequest](f)); n != 1 {
		t.Errorf("a task without inputs was approved %d times", n)
	}
}

// TestWhoSubmittedARunCannotApproveIt opens the list as an operator who submitted a run as a user.
func TestWhoSubmittedARunCannotApproveIt(t *testing.T) {
	f := newServicesWithApprovals()
	servicetest.AnswerWith(f, listRuns, &v1.ListRunsResponse{Items: []*v1.Run{{Id: "deploy-1", State: v1.RunPendingApproval, SubmittedBy: v1.RoleOperator}}})
	row := newVisitor(t, f, v1.RoleOperator).get("/ui/approvals")
	mustContain(t, row.text("#approval-deploy-1"), "operator submitted the run; another operator must decide")
	if n := len(row.all("#approval-deploy-1 button[disabled]")); n != 2 {
		t.Errorf("%d buttons are disabled", n)
	}
}

// TestWhoMayNotApproveSeesWhy opens the list and the page of a task as people who may not decide. Callers are named after their roles.
func TestWhoMayNotApproveSeesWhy(t *testing.T) {
	for name, test := range map[string]struct {
		caller, owner string
		fourEyes      bool
		spec          map[string]any
		why           string
	}{
		"anybody":             {caller: v1.RoleUser, owner: "ann"},
		"who submitted it":    {caller: v1.RoleOperator, owner: "operator", spec: map[string]any{"approvers": map[string]any{"not": "submitter"}}, why: "operator submitted the run"},
		"another":             {caller: v1.RoleAdmin, owner: "operator", spec: map[string]any{"approvers": map[string]any{"not": "submitter"}}},
		"four eyes":           {caller: v1.RoleUser, owner: "user", fourEyes: true, why: "--four-eyes"},
		"wrong role":          {caller: v1.RoleUser, owner: "user", spec: map[string]any{"roles": []any{"operator"}}, why: "requires a decision by the role operator; user has the role user"},
		"wrong name, to fill": {caller: v1.RoleOperator, owner: "ann", spec: map[string]any{"approvers": map[string]any{"names": []any{"bob"}}, "inputs": map[string]any{"tag": map[string]any{}}}, why: "requires a decision by bob"},
		"the right name":      {caller: v1.RoleUser, owner: "user", spec: map[string]any{"approvers": map[string]any{"names": []any{"user"}}}},
	} {
		f := newServicesWithApprovals()
		fakeTask(f, "ask", &v1.Task{State: v1.TaskPaused, Reason: v1.ReasonApproval, Type: v1.TypeApproval})
		servicetest.AnswerWith(f, getRun, &v1.GetRunResponse{Run: &v1.Run{Id: "ship-1", SubmittedBy: test.owner}})
		servicetest.AnswerWith(f, getRunDefinition, approvalDefinition(t, test.spec))
		visitor := newVisitor(t, f, test.caller, func(c *Config) { c.FourEyes = test.fourEyes })
		for address, at := range map[string]string{"/ui/approvals": "#approval-ship-1-ask", "/ui/runs/ship-1/tasks/ask": "main"} {
			page := visitor.get(address)
			disabled := len(page.all(at+" button[disabled]")) + len(page.all(at+` [aria-disabled="true"]`))
			if test.why == "" && disabled > 0 || test.why != "" && (disabled != 2 || !strings.Contains(page.text(at), test.why)) {
				t.Errorf("%s at %s: %d disabled, %s", name, address, disabled, page.text(at))
			}
		}
	}
}
