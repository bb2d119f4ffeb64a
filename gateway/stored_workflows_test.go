package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func putRequest(text string) *v1.PutWorkflowRequest {
	return &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: text}, Replace: true}
}

// putWorkflow stores a workflow.
func (f *fixture) putWorkflow(t *testing.T, text string) *v1.PutWorkflowResponse {
	t.Helper()
	return do(t, dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, "").PutWorkflow, putRequest(text))
}

// TestStoredWorkflowLifecycle covers the lifecycle of a stored definition, and starts a run of it.
func TestStoredWorkflowLifecycle(t *testing.T) {
	t.Parallel()
	f := start(t)
	c := dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, "")
	text := "description: \"it is: kept\"\na2a: true\ninputs: { text: { required: true } }\n" + document("kept", "a")
	if res := f.putWorkflow(t, text); res.GetName() != "kept" || res.GetReplaced() || len(res.GetWarnings()) > 0 {
		t.Errorf("put: %v", res)
	}
	twice := putRequest(text)
	twice.Replace = false
	refused(t, "put twice", c.PutWorkflow, twice, connect.CodeAlreadyExists)
	if res := f.putWorkflow(t, text+"  b: { type: shell, spec: { command: 'true' } }\n"); !res.GetReplaced() {
		t.Errorf("replace: %v", res)
	}
	err := refused(t, "put a bad one", c.PutWorkflow, putRequest(strings.Replace(text, "shell", "shel", 1)), connect.CodeInvalidArgument)
	if problems := problemsOf(t, err); problems[0].GetLine() == 0 {
		t.Errorf("the problems are %v", problems)
	}
	got := answer(t, c.GetWorkflow, &v1.GetWorkflowRequest{Name: "kept"})
	if def := got.GetDefinition(); len(def.GetTasks()) != 2 || !def.GetA2A() || !def.GetInputs()["text"].GetRequired() || got.GetUpdatedAt() == "" {
		t.Errorf("get: %v", got)
	}
	f.putWorkflow(t, "a2a: false\n"+document("kept-b", "a"))
	if w := f.putWorkflow(t, "a2a: true\n"+document("kept-a", "a")).GetWarnings(); len(w) != 1 || w[0].GetPath() != "a2a" {
		t.Errorf("offered to agents without a description: %v", w)
	}
	for search, want := range map[string][]string{
		"KEPT": {"kept true it is: kept", "kept-a true ", "kept-b false "}, "IT IS: Kept": {"kept true it is: kept"}, "EPT-": {"kept-a true ", "kept-b false "}, "kept it": nil,
	} {
		eventually(t, "a search for "+search+" finds what is stored, page by page", func() bool {
			var all []string
			for req := (&v1.ListWorkflowsRequest{Search: search, PageSize: 1}); ; {
				page := answer(t, c.ListWorkflows, req)
				for _, w := range page.GetItems() {
					all = append(all, fmt.Sprint(w.GetName(), " ", w.GetA2A(), " ", w.GetDescription()))
				}
				if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
					return slices.Equal(all, want) && page.GetTotal() == int32(len(want))
				}
			}
		})
	}

	submit := &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: "kept-b"}}
	run := do(t, f.client.SubmitRun, submit)
	terminate(t, run.GetId())
	if tasks := f.get(t, run.GetId()).GetTasks(); run.GetName() != "kept-b" || len(tasks) != 1 {
		t.Errorf("the run %v has %v", run, tasks)
	}
	do(t, c.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: "kept-b"})
	refused(t, "delete what is not there", c.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: "kept-b"}, connect.CodeNotFound)
	refused(t, "get what is not there", c.GetWorkflow, &v1.GetWorkflowRequest{Name: "kept-b"}, connect.CodeNotFound)
	refused(t, "submit what is not there", f.client.SubmitRun, submit, connect.CodeNotFound)
}

func TestInvalidWorkflowNameIsInvalidArgument(t *testing.T) {
	t.Parallel()
	f := start(t)
	c := dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, "")
	for _, name := range []string{"a\x01b", "é", "a/b", "a b", "'", "..", strings.Repeat("a", 64), "a\x00"} {
		submit := &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: name}}
		refused(t, "delete "+name, c.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: name}, connect.CodeInvalidArgument)
		refused(t, "get "+name, c.GetWorkflow, &v1.GetWorkflowRequest{Name: name}, connect.CodeInvalidArgument)
		refused(t, "submit "+name, f.client.SubmitRun, submit, connect.CodeInvalidArgument)
		refused(t, "plan "+name, f.client.PlanRun, &v1.PlanRunRequest{Submit: submit}, connect.CodeInvalidArgument)
		refused(t, "list the runs of "+name, f.client.ListRuns, &v1.ListRunsRequest{Name: name}, connect.CodeInvalidArgument)
	}
}

// TestMissingWorkflowIsReportedEarly checks that a missing workflow is an error where a run would need it, and a
// warning where it may be stored later.
// TestWorkflowThatStartsItselfWithoutEndIsRefused checks that no stored workflow always starts itself, alone or through others.
func TestWorkflowThatStartsItselfWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t)
	c := dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, "")
	calling := func(name, called, more string) *v1.PutWorkflowRequest {
		return putRequest(fmt.Sprintf("name: %s\ninputs: {n: {type: integer}}\ntasks: {a: {type: run, %s spec: {workflow: %s}}}", name, more, called))
	}
	err := refused(t, "a workflow that calls itself", c.PutWorkflow, calling("endless", "endless", ""), connect.CodeInvalidArgument)
	if !strings.Contains(err.Error(), "endless starts endless; give one of the tasks a condition") {
		t.Error(err)
	}
	answer(t, c.PutWorkflow, calling("endless", "endless", `condition: "workflow.input.n > 0",`))
	answer(t, c.PutWorkflow, calling("endless-a", "endless-b", ""))
	answer(t, c.PutWorkflow, calling("endless-b", "endless-c", ""))
	err = refused(t, "a workflow that calls itself through others", c.PutWorkflow, calling("endless-c", "endless-a", ""), connect.CodeInvalidArgument)
	if !strings.Contains(err.Error(), "endless-c starts endless-a starts endless-b starts endless-c") {
		t.Error(err)
	}
}

func TestMissingWorkflowIsReportedEarly(t *testing.T) {
	t.Parallel()
	f := start(t)
	if w := f.putWorkflow(t, document("deploy-all-hosts", "a")).GetWarnings(); len(w) != 0 {
		t.Errorf("warned of %v", w)
	}
	text := `name: calls-others
tasks:
  there: { type: run, spec: { workflow: deploy-all-hosts } }
  itself: { type: run, dependsOn: [there], condition: parent.there.exitCode == 1, spec: { workflow: calls-others } }
  given: { type: run, spec: { workflow: "${{ workflow.name }}" } }
  near: { type: run, spec: { definition: { name: inner, tasks: { a: { type: run, spec: { workflow: deploy-all-host } } } } } }
`
	shown := func(problems []*v1.Problem) (all []string) {
		for _, p := range problems {
			all = append(all, fmt.Sprintf("%d:%d %s", p.GetLine(), p.GetColumn(), p.GetHint()))
		}
		slices.Sort(all)
		return all
	}
	const near = "6:100 did you mean deploy-all-hosts?"
	eventually(t, "the near name is listed", func() bool { return slices.Equal(shown(f.putWorkflow(t, text).GetWarnings()), []string{near}) })
	err := refused(t, "a run of it", f.client.SubmitRun, submitRequest(strings.Replace(text, "name: calls-others", "name: calls-nobody", 1)), connect.CodeInvalidArgument)
	if got := shown(problemsOf(t, err)); !slices.Equal(got, []string{near}) {
		t.Errorf("the problems are %q", got)
	}
}

// TestOnlyTheOwnerReplacesWhatItHasStored checks that a definition with an owner, or with none, is not replaced or deleted by
// another owner, and that a plan shows what would change.
func TestOnlyTheOwnerReplacesWhatItHasStored(t *testing.T) {
	t.Parallel()
	f := start(t)
	c := dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, "")
	put := func(owner, task string, adopt bool) *v1.PutWorkflowRequest {
		return &v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: document("owned", task)}, Owner: owner, Adopt: adopt}
	}
	plan := func(task string) *v1.PlanWorkflowResponse {
		return answer(t, c.PlanWorkflow, &v1.PlanWorkflowRequest{Document: document("owned", task)})
	}
	if p := plan("a"); p.GetStored() != nil || p.GetName() != "owned" || len(p.GetDefinition().GetTasks()) != 1 {
		t.Errorf("before it is stored: %v", p)
	}
	do(t, c.PutWorkflow, put("yard", "a", false))
	if p := plan("a"); !proto.Equal(p.GetStored(), p.GetDefinition()) || p.GetOwner() != "yard" {
		t.Errorf("the same: %v", p)
	}
	if p := plan("b"); proto.Equal(p.GetStored(), p.GetDefinition()) {
		t.Errorf("another one: %v", p)
	}
	refused(t, "another owner", c.PutWorkflow, put("else", "b", false), connect.CodeAborted)
	refused(t, "a delete by another owner", c.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: "owned", Owner: "else"}, connect.CodeAborted)
	if res := do(t, c.PutWorkflow, put("yard", "b", false)); !res.GetReplaced() {
		t.Errorf("its owner: %v", res)
	}
	f.putWorkflow(t, document("owned", "c")) // by a person, who owns nothing
	refused(t, "the former owner", c.PutWorkflow, put("yard", "b", false), connect.CodeAborted)
	do(t, c.PutWorkflow, put("else", "b", true))
	if got := answer(t, c.GetWorkflow, &v1.GetWorkflowRequest{Name: "owned"}); got.GetOwner() != "else" {
		t.Errorf("adopted: %v", got)
	}
	refused(t, "a plan of another owner", c.PlanWorkflow, &v1.PlanWorkflowRequest{Document: document("owned", "b"), Owner: "yard"}, connect.CodeAborted)
	do(t, c.PlanWorkflow, &v1.PlanWorkflowRequest{Document: document("owned", "b"), Owner: "yard", Adopt: true})
	refused(t, "a bad owner", c.PutWorkflow, put("an owner", "b", false), connect.CodeInvalidArgument)
	refused(t, "a plan of a bad owner", c.PlanWorkflow, &v1.PlanWorkflowRequest{Document: document("owned", "b"), Owner: "an owner"}, connect.CodeInvalidArgument)
	do(t, c.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: "owned", Owner: "else"})
}

// TestPlanKnowsWhatIsStoredWithIt checks that a plan looks references up among the documents that are stored with it, and not among
// those that are deleted.
func TestPlanKnowsWhatIsStoredWithIt(t *testing.T) {
	t.Parallel()
	f := start(t)
	c := dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, "")
	calls := func(name, other string) string {
		return "name: " + name + "\ntasks:\n  go: { type: run, spec: { workflow: " + other + " } }\n"
	}
	f.putWorkflow(t, calls("plan-a", "plan-b"))
	endless := &v1.PlanWorkflowRequest{Document: calls("plan-b", "plan-a")}
	refused(t, "a circle", c.PlanWorkflow, endless, connect.CodeInvalidArgument)
	endless.Alongside = []string{document("plan-a", "work")}
	if res := answer(t, c.PlanWorkflow, endless); len(res.GetWarnings()) > 0 {
		t.Errorf("the circle ends with plan-a: %v", res.GetWarnings())
	}
	refused(t, "a circle of new ones", c.PlanWorkflow, &v1.PlanWorkflowRequest{Document: calls("plan-c", "plan-d"), Alongside: []string{calls("plan-d", "plan-c")}}, connect.CodeInvalidArgument)
	if res := answer(t, c.PlanWorkflow, &v1.PlanWorkflowRequest{Document: calls("plan-e", "plan-a"), Deleted: []string{"plan-a"}}); len(res.GetWarnings()) != 1 {
		t.Errorf("plan-a is deleted: %v", res.GetWarnings())
	}
}
