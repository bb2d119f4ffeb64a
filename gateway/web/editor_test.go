package web

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"switchyard/dev/servicetest"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
)

const badDocument = "name: release\ntasks:\n  build:\n    typ: shell\n    spec: { command: \"true\" }\n"

func TestEditorMarksProblemsAtTheirLines(t *testing.T) {
	f := &servicetest.Fake{}
	v := newVisitor(t, f, v1.RoleUser)
	for _, button := range []string{doCheck, doOnce} {
		res := v.send(v.get(editorPath), editorPath, button, "document", badDocument, "replace", "yes")
		if res.status != http.StatusUnprocessableEntity {
			t.Errorf("%s is answered %d", button, res.status)
		}
		mustContain(t, res.text("ul.notes"), "line 4, column 5", "typ: shell ^", "did you mean type?")
		if marked := res.texts("li.marked"); len(marked) == 0 {
			t.Error("no line is marked")
		} else {
			mustContain(t, marked[0]+marked[len(marked)-1], "typ: shell", "did you mean type?")
		}
		values := typedIn(res.all("form.editor")[0])
		if values.Get("document") != badDocument || values.Get("replace") != "yes" {
			t.Errorf("kept %v", values)
		}
	}
	_, want := definition.Parse("", []byte(badDocument))
	if len(servicetest.Requests[v1.SubmitRunRequest](f)) > 0 || want == nil {
		t.Error("a run was started")
	}
}

func TestEditorShowsWhatTheGatewayRefuses(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.Answer(f, putWorkflow, func(_ context.Context, req *v1.PutWorkflowRequest) (*v1.PutWorkflowResponse, error) {
		return nil, rpcerror.WrongState("workflow hello is already stored; request its replacement")
	})
	v := newVisitor(t, f, v1.RoleOperator)
	res := v.send(v.get(editorPath), editorPath, doStore)
	if res.status != http.StatusConflict {
		t.Errorf("answered %d", res.status)
	}
	mustContain(t, res.text("form.editor"), "Nothing was stored.", "is already stored")
	if got := typedIn(res.all("form.editor")[0]).Get("document"); got != newDocument {
		t.Errorf("kept %q", got)
	}
}

func TestEditorStoresChecksAndRuns(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, putWorkflow, &v1.PutWorkflowResponse{Name: "hello", Replaced: true})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceSubmitRunProcedure, &v1.SubmitRunResponse{Id: "hello-1", Name: "hello"})
	servicetest.AnswerWith(f, planRun, &v1.PlanRunResponse{Name: "hello", Tasks: []*v1.PlannedTask{{Task: "greet", Type: "shell", Placement: "2 of 2 nodes"}}})
	v := newVisitor(t, f, v1.RoleOperator)
	if res := v.send(v.get(editorPath), editorPath, doStore, "replace", "yes"); res.header.Get("Location") != "/ui/workflows/hello" {
		t.Errorf("storing is answered %d to %q", res.status, res.header.Get("Location"))
	}
	if got := servicetest.Requests[v1.PutWorkflowRequest](f)[0]; !got.GetReplace() || got.GetDocument() != newDocument {
		t.Errorf("stored %v", got)
	}
	page := v.get(editorPath)
	for range 2 {
		if res := v.send(page, editorPath, doOnce, documentField, "who: you"); res.header.Get("Location") != "/ui/runs/hello-1" {
			t.Errorf("running is answered %d to %q", res.status, res.header.Get("Location"))
		}
	}
	runs := servicetest.Requests[v1.SubmitRunRequest](f)
	if len(runs) != 2 || runs[0].GetIdempotencyKey() != runs[1].GetIdempotencyKey() || runs[0].GetInput().GetFields()["who"].GetStringValue() != "you" {
		t.Errorf("runs %v", runs)
	}
	res := v.send(v.get(editorPath), editorPath, doCheck)
	mustContain(t, textOf(res.doc), "The definition is valid: 1 task.", "2 of 2 nodes")
}

func TestEditorTellsViewersWhatTheyMayDo(t *testing.T) {
	v := newVisitor(t, &servicetest.Fake{}, v1.RoleViewer)
	page := v.get(editorPath)
	mustContain(t, page.text("form.editor"), "Run once needs the role user", "Store needs the role operator")
	res := v.send(page, editorPath, doCheck)
	mustContain(t, textOf(res.doc), "The definition is valid: 1 task.")
}

func TestEditorOpensTheStoredDefinition(t *testing.T) {
	v := newVisitor(t, withWorkflow(t, releaseDocument), v1.RoleOperator)
	address := editorPath + "?" + url.Values{"from": {"release"}}.Encode()
	values := typedIn(v.get(address).all("form.editor")[0])
	got, err := definition.Parse("", []byte(values.Get("document")))
	if err != nil || got.GetName() != "release" || values.Get("replace") != "yes" {
		t.Errorf("the editor has %v: %v", values, err)
	}
	res := v.send(v.get(address), address, doCheck, "document", hostile)
	mustContain(t, res.text("h1"), "Edit release")
	mustBeHarmless(t, res)
}
