package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/net/html"

	"switchyard/dev/servicetest"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
)

const (
	getWorkflow     = switchyardv1connect.WorkflowServiceGetWorkflowProcedure
	triggerWorkflow = switchyardv1connect.WorkflowServiceTriggerWorkflowProcedure
	putWorkflow     = switchyardv1connect.WorkflowServicePutWorkflowProcedure
	planRun         = switchyardv1connect.RunServicePlanRunProcedure
)

const releaseDocument = `name: release
description: Builds and ships.
inputs:
  version: { required: true, description: What to ship }
  retries: { type: integer, default: 3 }
  ratio: { type: number }
  notify: { type: boolean, default: true }
  force: { type: boolean }
  channel: { enum: [stable, beta], default: stable }
  hosts: { type: list, default: [a, b] }
  notes: { default: "one\ntwo" }
tasks:
  build:
    type: shell
    spec: { command: "echo ${{ input.version }}" }
  ship:
    type: shell
    dependsOn: [build]
    spec: { command: "echo {{ input.version }}" }
`

// withWorkflow returns services with a stored workflow.
func withWorkflow(t *testing.T, document string) *servicetest.Fake {
	t.Helper()
	def, err := definition.Parse("release.yaml", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	f := &servicetest.Fake{}
	servicetest.Answer(f, getWorkflow, func(_ context.Context, req *v1.GetWorkflowRequest) (*v1.GetWorkflowResponse, error) {
		if req.GetName() != def.GetName() {
			return nil, rpcerror.Missing("workflow", req.GetName(), "")
		}
		return &v1.GetWorkflowResponse{Definition: def, UpdatedAt: "2026-03-04T11:00:00Z"}, nil
	})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunsProcedure, &v1.ListRunsResponse{Items: []*v1.Run{
		{Id: "release-1", Name: "release", State: v1.RunFailed, Error: "task build failed"},
	}})
	servicetest.AnswerWith(f, triggerWorkflow, &v1.TriggerWorkflowResponse{Id: "release-2", Name: "release"})
	return f
}

// send submits the form with an action on a page, using one of its buttons. Pairs are the names and values of typed fields.
func (v *visitor) send(page answered, action, button string, pairs ...string) answered {
	v.t.Helper()
	forms := page.all(`form[action="` + action + `"]`)
	if len(forms) == 0 {
		v.t.Fatalf("there is no form to %s", action)
	}
	values := typedIn(forms[0])
	if button != "" {
		values.Set(doField, button)
	}
	for i := 0; i < len(pairs); i += 2 {
		if values.Del(pairs[i]); pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return v.do(http.MethodPost, action, values, "text/html")
}

// typedIn returns the values that a browser would submit for a form.
func typedIn(form *html.Node) url.Values {
	values := url.Values{}
	for _, input := range selected(form, "input") {
		_, isChecked := attributeOf(input, "checked")
		if attribute(input, "type") != "checkbox" || isChecked {
			values.Set(attribute(input, "name"), attribute(input, "value"))
		}
	}
	for _, area := range selected(form, "textarea") {
		if area.FirstChild != nil {
			values.Set(attribute(area, "name"), area.FirstChild.Data)
		} else {
			values.Set(attribute(area, "name"), "")
		}
	}
	for _, list := range selected(form, "select") {
		for _, option := range selected(list, "option") {
			if _, isSelected := attributeOf(option, "selected"); isSelected || !values.Has(attribute(list, "name")) {
				values.Set(attribute(list, "name"), attribute(option, "value"))
			}
		}
	}
	return values
}

func attributeOf(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func TestWorkflowShowsItsDefinitionWithProblems(t *testing.T) {
	page := newVisitor(t, withWorkflow(t, releaseDocument), v1.RoleViewer).get("/ui/workflows/release")
	mustContain(t, page.text("#workflow-facts"), "Builds and ships.", "Tasks 2")
	mustContain(t, page.text("#workflow-text"), "name: release", "command: echo ${{ input.version }}", "dependsOn: [build]", "warning")
	if marked := page.texts("li.marked"); len(marked) != 1 {
		t.Errorf("marked lines: %q", marked)
	} else {
		mustContain(t, marked[0], "echo {{ input.version }}", "warning: column")
	}
	mustContain(t, page.text("#workflow-runs"), "failed", "release-1", "task build failed")
	mustContain(t, page.text("form.inputs"), "Run now needs the role user; you have the role viewer")
	mustBeHarmless(t, page)
}

func TestWorkflowHasAFieldForEachInput(t *testing.T) {
	page := newVisitor(t, withWorkflow(t, releaseDocument), v1.RoleUser).get("/ui/workflows/release")
	values := typedIn(page.all("form.inputs")[0])
	for name, want := range map[string]string{
		"input.version": "", "input.retries": "3", "input.ratio": "", "input.notify": "true", "input.force": "", "input.channel": "stable",
		"input.hosts": `["a", "b"]`, "input.notes": "one\ntwo",
	} {
		got := values.Get(name)
		if name == "input.hosts" {
			mustContain(t, got, `"a"`, `"b"`)
			continue
		}
		if got != want || !values.Has(name) {
			t.Errorf("field %s has %q, want %q", name, got, want)
		}
	}
	mustContain(t, page.text("form.inputs"), "version required", "What to ship", "integer, default 3", "not given", "list as JSON or YAML")
}

func TestWorkflowRunsWithTheTypedInput(t *testing.T) {
	f := withWorkflow(t, releaseDocument)
	v := newVisitor(t, f, v1.RoleUser)
	page := v.get("/ui/workflows/release")
	const action = "/ui/workflows/release"
	typedValues := []string{"input.version", "1.10", "input.notify", "", "input.force", "true", "input.hosts", `["c"]`, "input.ratio", "0.5"}
	for range 2 {
		res := v.send(page, action, doRun, typedValues...)
		if res.status != http.StatusSeeOther || res.header.Get("Location") != "/ui/runs/release-2" {
			t.Fatalf("answered %d to %s: %s", res.status, res.header.Get("Location"), res.body)
		}
	}
	got := servicetest.Requests[v1.TriggerWorkflowRequest](f)
	if len(got) != 2 || got[0].GetIdempotencyKey() == "" || got[0].GetIdempotencyKey() != got[1].GetIdempotencyKey() {
		t.Fatalf("requests %v", got)
	}
	input := got[0].GetInput().AsMap()
	for name, want := range map[string]any{"version": "1.10", "retries": 3., "notify": false, "force": true, "channel": "stable", "ratio": 0.5, "notes": "one\ntwo"} {
		if input[name] != want {
			t.Errorf("input %s is %v, want %v", name, input[name], want)
		}
	}
	v.send(v.get("/ui/workflows/release"), action, doRun, typedValues...)
	if got := servicetest.Requests[v1.TriggerWorkflowRequest](f); got[2].GetIdempotencyKey() == got[0].GetIdempotencyKey() {
		t.Error("a page that was loaded again has the key of the first one")
	}
}

func TestWorkflowFormKeepsInvalidInputWithItsProblems(t *testing.T) {
	f := withWorkflow(t, releaseDocument)
	v := newVisitor(t, f, v1.RoleUser)
	const action = "/ui/workflows/release"
	res := v.send(v.get("/ui/workflows/release"), action, doRun, "input.version", hostile, "input.retries", "many", "input.hosts", "[")
	if res.status != http.StatusUnprocessableEntity {
		t.Errorf("answered %d", res.status)
	}
	if n := len(servicetest.Requests[v1.TriggerWorkflowRequest](f)); n > 0 {
		t.Errorf("%d runs", n)
	}
	values := typedIn(res.all("form.inputs")[0])
	if values.Get("input.version") != hostile || values.Get("input.retries") != "many" || values.Get("input.hosts") != "[" {
		t.Errorf("kept %v", values)
	}
	mustContain(t, res.text("#input-retries-about"), "must be a whole number")
	mustContain(t, res.text("#input-hosts-about"), "cannot be read")
	mustContain(t, res.text("form.inputs"), "Nothing was started")
	mustBeHarmless(t, res)

	def, _ := definition.Parse("", []byte(releaseDocument))
	servicetest.Answer(f, triggerWorkflow, func(context.Context, *v1.TriggerWorkflowRequest) (*v1.TriggerWorkflowResponse, error) {
		_, err := definition.Input(def, nil)
		return nil, rpcerror.InvalidWith(err, &v1.ValidationFailure{Problems: problemsOf(err)})
	})
	res = v.send(v.get("/ui/workflows/release"), action, doRun)
	mustContain(t, res.text("#input-version-about"), "input version is missing")
	if res.status != http.StatusBadRequest {
		t.Errorf("answered %d", res.status)
	}
}

func TestWorkflowShowsAPlan(t *testing.T) {
	f := withWorkflow(t, releaseDocument)
	servicetest.AnswerWith(f, planRun, &v1.PlanRunResponse{Name: "release", Tasks: []*v1.PlannedTask{
		{Task: "build", Type: "shell", Placement: "1 of 2 nodes", Nodes: []*v1.NodeVerdict{{Name: "one", Feasible: true}, {Name: "two", Reasons: []string{"is draining"}}}},
		{Task: "ship", Type: "shell", Level: 1, DependsOn: []string{"build"}, Placement: "no node"},
	}})
	v := newVisitor(t, f, v1.RoleUser)
	res := v.send(v.get("/ui/workflows/release"), "/ui/workflows/release", doPreview, "input.version", "7")
	if res.status != http.StatusOK {
		t.Errorf("answered %d", res.status)
	}
	mustContain(t, res.text("section"), "2 tasks; nothing has been started", "1 of 2 nodes", "two: is draining", "one could take it")
	if got := typedIn(res.all("form.inputs")[0]).Get("input.version"); got != "7" {
		t.Errorf("kept %q", got)
	}
}

func TestFormWithoutProofIsShownAgain(t *testing.T) {
	f := withWorkflow(t, releaseDocument)
	v := newVisitor(t, f, v1.RoleUser)
	v.get("/ui/workflows/release")
	res := v.do(http.MethodPost, "/ui/workflows/release", url.Values{"input.version": {"kept"}, "do": {doRun}}, "text/html")
	if res.status != http.StatusBadRequest || typedIn(res.all("form.inputs")[0]).Get("input.version") != "kept" {
		t.Errorf("answered %d: %s", res.status, textOf(res.doc))
	}
	if n := len(servicetest.Requests[v1.TriggerWorkflowRequest](f)); n > 0 {
		t.Errorf("%d runs", n)
	}
}

func TestWorkflowsAreListed(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, switchyardv1connect.WorkflowServiceListWorkflowsProcedure, &v1.ListWorkflowsResponse{Total: 70, NextPageToken: "more", Items: []*v1.StoredWorkflow{
		{Name: "release", Description: hostile, UpdatedAt: "2026-03-04T11:00:00Z", Cron: []string{"0 2 * * MON-FRI"}, Timezone: "Europe/Berlin", Paused: true, A2A: true},
	}})
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/workflows?search=rel")
	mustContain(t, page.text("#workflows"), "release", "at 02:00 on Monday to Friday (Europe/Berlin)", "paused", "A2A skill")
	mustContain(t, page.text("#pager"), "70 workflows")
	if got := page.link("Next page"); got != "/ui/workflows?page=more&search=rel" {
		t.Errorf("the next page is %q", got)
	}
	if got := servicetest.Requests[v1.ListWorkflowsRequest](f); got[0].GetSearch() != "rel" {
		t.Errorf("requests %v", got)
	}
	mustBeHarmless(t, page)
}

func TestOutagesAreNotReportedAsDefinitionProblems(t *testing.T) {
	f := withWorkflow(t, releaseDocument)
	servicetest.Refuse(f, triggerWorkflow, connect.CodeUnavailable, "Temporal is away")
	v := newVisitor(t, f, v1.RoleUser)
	res := v.send(v.get("/ui/workflows/release"), "/ui/workflows/release", doRun, "input.version", "7")
	if res.status != http.StatusServiceUnavailable {
		t.Errorf("answered %d", res.status)
	}
	mustContain(t, res.text("form.inputs"), "Temporal is away")
}

func TestWorkflowShowsTheGraphOfItsTasks(t *testing.T) {
	document := "name: release\ntasks:\n  \"1\":\n    type: shell\n    spec:\n      command: |\n        tasks:\n          ship: x\n  ship:\n    type: approval\n    dependsOn: [\"1\"]\n    spec: { message: go }\n"
	page := newVisitor(t, withWorkflow(t, document), v1.RoleViewer).get("/ui/workflows/release")
	mustContain(t, page.text("#workflow-graph"), "1", "shell", "ship", "approval")
	links := page.all("#workflow-graph a")
	if len(links) != 2 {
		t.Fatalf("%d links", len(links))
	}
	for i, want := range []string{`"1":`, "ship:"} {
		line := page.text(strings.Replace(attribute(links[i], "href"), "#", "li#", 1))
		if line != want {
			t.Errorf("task %d leads to the line %q", i, line)
		}
	}
	mustBeHarmless(t, page)
}
