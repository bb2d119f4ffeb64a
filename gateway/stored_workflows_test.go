package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestStoredWorkflowLifecycle covers the lifecycle of a stored definition, and starts a run of it.
func TestStoredWorkflowLifecycle(t *testing.T) {
	t.Parallel()
	f := start(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := switchyardv1connect.NewWorkflowServiceClient(&http.Client{Transport: transport}, f.server.URL(), connect.WithProtoJSON())
	put := func(text string, replace bool) (*connect.Response[v1.PutWorkflowResponse], error) {
		return c.PutWorkflow(t.Context(), connect.NewRequest(&v1.PutWorkflowRequest{
			Source: &v1.PutWorkflowRequest_Document{Document: text}, Replace: replace,
		}))
	}
	text := "description: \"it is: kept\"\n" + document("kept", "a")
	if res, err := put(text, false); err != nil || res.Msg.GetName() != "kept" || res.Msg.GetReplaced() {
		t.Fatal(res, err)
	}
	_, err := put(text, false)
	wantCode(t, "put twice", err, connect.CodeAlreadyExists)
	if res, err := put(text+"  b: { type: shell, spec: { command: 'true' } }\n", true); err != nil || !res.Msg.GetReplaced() {
		t.Fatal(res, err)
	}
	_, err = put(strings.Replace(text, "shell", "shel", 1), true)
	wantCode(t, "put a bad one", err, connect.CodeInvalidArgument)
	if problems := problemsOf(t, err); problems[0].GetLine() == 0 {
		t.Errorf("the problems are %v", problems)
	}
	got, err := c.GetWorkflow(t.Context(), connect.NewRequest(&v1.GetWorkflowRequest{Name: "kept"}))
	if err != nil || len(got.Msg.GetDefinition().GetTasks()) != 2 || got.Msg.GetUpdatedAt() == "" {
		t.Fatal(got, err)
	}

	for _, name := range []string{"kept-b", "kept-a"} {
		if _, err := put(document(name, "a"), false); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "they are listed, page by page", func() bool {
		var all []string
		token := ""
		for {
			page, err := c.ListWorkflows(t.Context(), connect.NewRequest(&v1.ListWorkflowsRequest{PageSize: 1, PageToken: token}))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range page.Msg.GetItems() {
				if strings.HasPrefix(w.GetName(), "kept") {
					all = append(all, w.GetName()+" "+w.GetDescription())
				}
			}
			if token = page.Msg.GetNextPageToken(); token == "" {
				return slices.Equal(all, []string{"kept it is: kept", "kept-a ", "kept-b "})
			}
		}
	})

	for search, want := range map[string][]string{"IT IS: Kept": {"kept"}, "EPT-": {"kept-a", "kept-b"}, "kept it": nil} {
		var found []string
		page, err := c.ListWorkflows(t.Context(), connect.NewRequest(&v1.ListWorkflowsRequest{Search: search, PageSize: 1}))
		for ; err == nil; page, err = c.ListWorkflows(t.Context(), connect.NewRequest(&v1.ListWorkflowsRequest{Search: search, PageSize: 1, PageToken: page.Msg.GetNextPageToken()})) {
			for _, w := range page.Msg.GetItems() {
				found = append(found, w.GetName())
			}
			if page.Msg.GetTotal() != int32(len(want)) {
				t.Errorf("the total of %q is %d, want %d", search, page.Msg.GetTotal(), len(want))
			}
			if page.Msg.GetNextPageToken() == "" {
				break
			}
		}
		if err != nil || !slices.Equal(found, want) {
			t.Errorf("%q finds %v, %v; want %v", search, found, err, want)
		}
	}

	run, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: "kept"}}))
	if err != nil || run.Msg.GetName() != "kept" {
		t.Fatal(run, err)
	}
	if tasks := f.get(t, run.Msg.GetId()).GetTasks(); len(tasks) != 2 {
		t.Errorf("its tasks are %v", tasks)
	}
	end(t, run.Msg.GetId(), "completed")

	if _, err := c.DeleteWorkflow(t.Context(), connect.NewRequest(&v1.DeleteWorkflowRequest{Name: "kept"})); err != nil {
		t.Fatal(err)
	}
	_, deleteErr := c.DeleteWorkflow(t.Context(), connect.NewRequest(&v1.DeleteWorkflowRequest{Name: "kept"}))
	_, getErr := c.GetWorkflow(t.Context(), connect.NewRequest(&v1.GetWorkflowRequest{Name: "kept"}))
	_, runErr := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: "kept"}}))
	for what, err := range map[string]error{"delete": deleteErr, "get": getErr, "submit": runErr} {
		wantCode(t, what+" what is not there", err, connect.CodeNotFound)
	}
}

// TestListOfStoredWorkflowsShowsWhatIsOfferedToAgents checks that ListWorkflows shows which workflows are offered to
// other agents, without a read of each definition.
func TestListOfStoredWorkflowsShowsWhatIsOfferedToAgents(t *testing.T) {
	t.Parallel()
	f := start(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := switchyardv1connect.NewWorkflowServiceClient(&http.Client{Transport: transport}, f.server.URL(), connect.WithProtoJSON())
	for _, text := range []string{
		"a2a: true\ndescription: greets\ninputs: { text: { required: true } }\n" + document("agent-skill", "a"),
		"a2a: false\n" + document("agent-skill-off", "a"), document("agent-skill-none", "a"),
	} {
		res, err := c.PutWorkflow(t.Context(), connect.NewRequest(&v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: text}}))
		if err != nil || len(res.Msg.GetWarnings()) > 0 {
			t.Fatal(res, err)
		}
	}
	eventually(t, "they are listed", func() bool {
		page, err := c.ListWorkflows(t.Context(), connect.NewRequest(&v1.ListWorkflowsRequest{Search: "agent-skill"}))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, w := range page.Msg.GetItems() {
			all = append(all, fmt.Sprint(w.GetName(), " ", w.GetA2A(), " ", w.GetDescription()))
		}
		return slices.Equal(all, []string{"agent-skill true greets", "agent-skill-none false ", "agent-skill-off false "})
	})
	got, err := c.GetWorkflow(t.Context(), connect.NewRequest(&v1.GetWorkflowRequest{Name: "agent-skill"}))
	if def := got.Msg.GetDefinition(); err != nil || !def.GetA2A() || !def.GetInputs()["text"].GetRequired() {
		t.Error(got, err)
	}
	res, err := c.PutWorkflow(t.Context(), connect.NewRequest(&v1.PutWorkflowRequest{
		Source: &v1.PutWorkflowRequest_Document{Document: "a2a: true\n" + document("agent-skill", "a")}, Replace: true,
	}))
	if err != nil || len(res.Msg.GetWarnings()) != 1 || res.Msg.GetWarnings()[0].GetPath() != "a2a" {
		t.Errorf("without a description: %v, %v", res, err)
	}
}

func TestInvalidWorkflowNameIsInvalidArgument(t *testing.T) {
	t.Parallel()
	f := start(t)
	c := switchyardv1connect.NewWorkflowServiceClient(http.DefaultClient, f.server.URL())
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, name := range []string{"a\x01b", "a\nb", "é", "naïve", "a/b", "a b", "'", "..", strings.Repeat("a", 64), "a\x00"} {
		_, deleteErr := c.DeleteWorkflow(t.Context(), connect.NewRequest(&v1.DeleteWorkflowRequest{Name: name}))
		_, getErr := c.GetWorkflow(t.Context(), connect.NewRequest(&v1.GetWorkflowRequest{Name: name}))
		_, runErr := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: name}}))
		_, planErr := f.client.PlanRun(t.Context(), connect.NewRequest(&v1.PlanRunRequest{Submit: &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: name}}}))
		_, listErr := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Name: name}))
		for what, err := range map[string]error{"delete": deleteErr, "get": getErr, "submit": runErr, "plan": planErr, "list the runs of": listErr} {
			wantCode(t, fmt.Sprintf("%s %q", what, name), err, connect.CodeInvalidArgument)
		}
	}
}

// TestLargeDefinitionIsRun runs a document of 1 MiB that its defaults expand to much more.
func TestLargeDefinitionIsRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	var b strings.Builder
	fmt.Fprintf(&b, "name: huge\ndefaults: { type: shell, env: { A: \"%s\" } }\ntasks:\n", strings.Repeat("\\u0001", 2000))
	for i := range 600 {
		fmt.Fprintf(&b, "  t%d: { spec: { command: 'echo %s' } }\n", i, strings.Repeat(strconv.Itoa(i*7919), 1600/len(strconv.Itoa(i*7919))))
	}
	if b.Len() < 900_000 || b.Len() > 1<<20 {
		t.Fatalf("the document has %d bytes", b.Len())
	}
	res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: b.String()}}))
	if err != nil {
		t.Fatal(err)
	}
	in := f.inputOf(t, res.Msg.GetId())
	if n := len(in.GetDefinition().GetTasks()); n != 600 || len(in.GetDefinition().GetTasks()["t9"].GetEnv()["A"]) != 2000 {
		t.Errorf("it has %d tasks", n)
	}
	if err := temporalClient.TerminateWorkflow(t.Context(), res.Msg.GetId(), "", "the test is over"); err != nil {
		t.Fatal(err)
	}
}

// TestMissingWorkflowIsReportedEarly checks that a missing workflow is an error where a run would need it, and a
// warning where it may be stored later.
func TestMissingWorkflowIsReportedEarly(t *testing.T) {
	t.Parallel()
	f := start(t)
	c := switchyardv1connect.NewWorkflowServiceClient(http.DefaultClient, f.server.URL())
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	put := func(text string) *v1.PutWorkflowResponse {
		res, err := c.PutWorkflow(t.Context(), connect.NewRequest(&v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: text}, File: "w.yaml"}))
		if err != nil {
			t.Fatal(err)
		}
		return res.Msg
	}
	if w := put(document("deploy-all-hosts", "a")).GetWarnings(); len(w) != 0 {
		t.Errorf("warned of %v", w)
	}
	eventually(t, "it is listed", func() bool {
		res, err := c.ListWorkflows(t.Context(), connect.NewRequest(&v1.ListWorkflowsRequest{}))
		return err == nil && slices.ContainsFunc(res.Msg.GetItems(), func(w *v1.StoredWorkflow) bool { return w.GetName() == "deploy-all-hosts" })
	})
	text := `name: calls-others
tasks:
  there: { type: run, spec: { workflow: deploy-all-hosts } }
  itself: { type: run, spec: { workflow: calls-others } }
  given: { type: run, spec: { workflow: "${{ workflow.name }}" } }
  near: { type: run, spec: { definition: { name: inner, tasks: { a: { type: run, spec: { workflow: deploy-all-host } }, b: { type: shell, spec: { command: 'echo {{ inputs.x }}' } } } } } }
`
	want := []string{
		`6:100 no workflow is stored under the name "deploy-all-host": did you mean deploy-all-hosts?`,
		`6:162 spec.command has "{{ inputs.x }}", which is not replaced: pass it through env, as X: "${{ workflow.input.x }}", and write "$X" here`,
	}
	shown := func(problems []*v1.Problem) (all []string) {
		for _, p := range problems {
			all = append(all, fmt.Sprintf("%d:%d %s: %s", p.GetLine(), p.GetColumn(), p.GetMessage(), p.GetHint()))
		}
		slices.Sort(all)
		return all
	}
	_, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: text}}))
	wantCode(t, "a run of it", err, connect.CodeInvalidArgument)
	if got := shown(problemsOf(t, err)); len(got) != 2 || !strings.HasPrefix(got[0], `4:42 no workflow is stored under the name "calls-others"`) || got[1] != want[0] {
		t.Errorf("the problems are %q", got)
	}
	slices.Sort(want)
	if got := shown(put(text).GetWarnings()); !slices.Equal(got, want) {
		t.Errorf("warned of %q, want %q", got, want)
	}
}
