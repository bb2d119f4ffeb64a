package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/inprocess"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// newFleet returns services that answer some calls as a gateway would.
func newFleet() *servicetest.Fake {
	f := &servicetest.Fake{}
	servicetest.Answer(f, switchyardv1connect.RunServiceGetRunProcedure, func(_ context.Context, req *v1.GetRunRequest) (*v1.GetRunResponse, error) {
		switch req.GetId() {
		case "panic":
			panic("boom")
		case "r-1":
			return &v1.GetRunResponse{Run: &v1.Run{Id: "r-1", State: v1.RunRunning}}, nil
		}
		return nil, connect.NewError(connect.CodeNotFound, errors.New(`there is no run "`+req.GetId()+`"`))
	})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceGetRunTaskProcedure, &v1.GetRunTaskResponse{Task: &v1.Task{State: v1.TaskRunning}})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListDeadLettersProcedure, &v1.ListDeadLettersResponse{Items: []*v1.DeadLetter{{Run: "r-1", Task: "a"}}})
	servicetest.AnswerWith(f, switchyardv1connect.NodeServiceListNodesProcedure, &v1.ListNodesResponse{Items: []*v1.Node{{Name: "n.1", State: v1.NodeActive, Capabilities: map[string]string{v1.SessionCapability("s1"): "true"}}, {Name: "n_1", State: v1.NodeOffline}}})
	servicetest.AnswerWith(f, switchyardv1connect.NodeServiceGetNodeProcedure, &v1.GetNodeResponse{Node: &v1.Node{Name: "n.1", State: v1.NodeActive}})
	servicetest.Answer(f, switchyardv1connect.RunServiceListRunTasksProcedure, listManyTasks)
	servicetest.Answer(f, switchyardv1connect.RunServicePlanRunProcedure, func(_ context.Context, req *v1.PlanRunRequest) (*v1.PlanRunResponse, error) {
		res := &v1.PlanRunResponse{}
		for name := range req.GetSubmit().GetDefinition().GetTasks() {
			res.Tasks = append(res.Tasks, &v1.PlannedTask{Task: name, Placement: "1 of 1 nodes"})
		}
		return res, nil
	})
	return f
}

// listManyTasks pages through 1,000 tasks.
func listManyTasks(_ context.Context, req *v1.ListRunTasksRequest) (*v1.ListRunTasksResponse, error) {
	first, _ := strconv.Atoi(req.GetPageToken())
	res := &v1.ListRunTasksResponse{Total: 1000}
	for n := first; n < 1000 && len(res.Items) < int(req.GetPageSize()); n++ {
		name := fmt.Sprintf("task-with-a-name-%04d", n)
		res.Items = append(res.Items, &v1.Task{
			Name: &name, Type: v1.TypeShell, State: v1.TaskFailed, Node: "a-node-with-a-long-name", Reason: v1.ReasonExitCode,
			Error: strings.Repeat("what went wrong, with much to say about it; ", 20), DependsOn: []string{"a", "b"},
		})
		res.NextPageToken = strconv.Itoa(n + 1)
	}
	if res.GetNextPageToken() == "1000" {
		res.NextPageToken = ""
	}
	return res, nil
}

// connectToFleet returns a client session of a server for a new fleet.
func connectToFleet(t *testing.T) *sdk.ClientSession {
	t.Helper()
	return connectTo(t, New(Config{Services: servicesOf(newFleet())}))
}

func servicesOf(f *servicetest.Fake) *Services {
	return NewServices(inprocess.Client{Handler: f.Handler()}, inprocess.URL)
}

// connectTo returns a client session of a server.
func connectTo(t *testing.T, s *Server) *sdk.ClientSession {
	t.Helper()
	there, here := sdk.NewInMemoryTransports()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- s.Run(ctx, there) }()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		cancel()
		<-ended
	})
	return session
}

// use calls a tool and returns the text of its result.
func use(t *testing.T, session *sdk.ClientSession, name string, arguments any) (text string, isError bool) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: an error of the protocol: %v", name, err)
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

// TestEveryToolIsComplete checks that every row of the table yields a complete tool.
func TestEveryToolIsComplete(t *testing.T) {
	session := connectToFleet(t)
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Tools) != len(tools()) {
		t.Errorf("%d tools are listed of %d", len(listed.Tools), len(tools()))
	}
	for _, made := range listed.Tools {
		in, _ := json.Marshal(made.InputSchema)
		whole, err := json.Marshal(made)
		if err != nil || strings.Contains(string(whole), "$ref") || strings.Contains(string(whole), `"description":""`) {
			t.Errorf("%s: %s %v", made.Name, whole, err)
		}
		of := tools()[slices.IndexFunc(tools(), func(x *tool) bool { return x.name == made.Name })]
		if made.Description == "" || made.OutputSchema == nil && strings.HasPrefix(made.Name, "list_") || made.Annotations.ReadOnlyHint == of.isWriting() {
			t.Errorf("%s: %s", made.Name, whole)
		}
		if of.isWriting() != (of.preview != nil) || of.isWriting() != strings.Contains(string(in), `"preview"`) {
			t.Errorf("%s: tools that write, and no others, have a preview", made.Name)
		}
	}
	// An agent reads all of this before it starts.
	if all, err := json.Marshal(listed); err != nil || len(all) >= 25_000 || len(listed.Tools) != 20 {
		t.Errorf("%d tools take %d bytes, error %v", len(listed.Tools), len(all), err)
	}
}

// TestWaitAnswersWithTheStateAtThatTime waits for a run that ends neither before the wait nor before the deadline that a client
// of the gateway would set: a deadline of the wait must not reach the gateway, which would end the call with an error.
func TestWaitAnswersWithTheStateAtThatTime(t *testing.T) {
	f := newFleet()
	servicetest.AnswerStream(f, switchyardv1connect.RunServiceWatchRunProcedure, func(ctx context.Context, req *v1.WatchRunRequest, send func(*v1.WatchRunResponse) error) error {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < callTimeout/2 {
			return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the deadline of the server came first"))
		}
		if req.GetId() != "r-1" {
			return connect.NewError(connect.CodeNotFound, errors.New("there is no run "+req.GetId()))
		}
		if err := send(&v1.WatchRunResponse{Run: &v1.Run{Id: "r-1", State: v1.RunRunning}}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	session := connectTo(t, New(Config{Services: servicesOf(f)}))
	for tool, arguments := range map[string]map[string]any{
		"get_workflow_status": {"run": "r-1", "waitSeconds": 1},
		"get_task_result":     {"run": "r-1", "task": "a", "waitSeconds": 1},
	} {
		text, isError := use(t, session, tool, arguments)
		if isError || !strings.Contains(text, `"state":"running"`) {
			t.Errorf("%s: %s", tool, text)
		}
	}
	if text, isError := use(t, session, "get_workflow_status", map[string]any{"run": "r-2", "waitSeconds": 1}); !isError || !strings.Contains(text, "there is no run r-2") {
		t.Errorf("a run that does not exist: %s", text)
	}
}

// TestInputOfARunIsShownAsItIs checks that data is shown without rounding.
func TestInputOfARunIsShownAsItIs(t *testing.T) {
	input, err := structpb.NewStruct(map[string]any{"rate": 0.001, "id": 9007199254740991, "none": 0, "empty": ""})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := shorten(&v1.Run{Input: input})
	if diff := cmp.Diff(map[string]any{"rate": 0.001, "id": 9007199254740991.0, "none": 0.0, "empty": ""}, shown["input"]); err != nil || diff != "" {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

func TestReadOnlyServerHasNoToolThatWrites(t *testing.T) {
	session := connectTo(t, New(Config{Services: servicesOf(newFleet()), ReadOnly: true}))
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Tools) < 10 {
		t.Errorf("%d tools are left", len(listed.Tools))
	}
	for _, made := range listed.Tools {
		if !made.Annotations.ReadOnlyHint {
			t.Errorf("%s is offered", made.Name)
		}
	}
	if text, isError := use(t, session, "cancel_task", map[string]any{"run": "r-1", "task": "a"}); !isError || !strings.Contains(text, "read-only") {
		t.Errorf("%s", text)
	}
}

// TestPreviewChangesNothing calls every tool that writes with preview and checks that no call writes.
func TestPreviewChangesNothing(t *testing.T) {
	arguments := map[string]map[string]any{
		"submit_task":            {"type": "shell", "spec": map[string]any{"command": "true"}},
		"submit_workflow":        {"workflow": "stored"},
		"dispatch_subagents":     {"prompt": "say hi", "count": 2},
		"run_distributed":        {"command": "true", "nodes": []string{"*"}},
		"cancel_task":            {"run": "r-1", "task": "a"},
		"cancel_workflow":        {"run": "r-1"},
		"retry_workflow":         {"run": "r-1"},
		"retry_dead_letter_task": {"run": "r-1"},
		"drain_node_tasks":       {"node": "n.1"},
		"undrain_node":           {"node": "n.1"},
	}
	for _, each := range tools() {
		if !each.isWriting() {
			continue
		}
		f := newFleet()
		session := connectTo(t, New(Config{Services: servicesOf(f)}))
		given := arguments[each.name]
		if given == nil {
			t.Errorf("%s has no arguments here", each.name)
			continue
		}
		given[previewName] = true
		text, isError := use(t, session, each.name, given)
		if isError || !strings.HasPrefix(text, `{"preview":{`) {
			t.Errorf("%s: %s", each.name, text)
		}
		if len(f.Calls()) == 0 {
			t.Errorf("%s has asked nothing", each.name)
		}
		for _, call := range f.Calls() {
			if v1.RulesOf(call.Method).GetEffect() == v1.Effect_EFFECT_WRITE {
				t.Errorf("the preview of %s calls %s", each.name, call.Method.Name())
			}
		}
	}
}

// TestErrorsTellTheModelTheRemedy checks that errors are tool results that contain the remedy.
func TestErrorsTellTheModelTheRemedy(t *testing.T) {
	session := connectToFleet(t)
	for name, test := range map[string]struct {
		tool      string
		arguments any
		want      []string
	}{
		"an unknown tool":       {"list_task", nil, []string{`no tool "list_task"`, "list_tasks"}},
		"a tool like no other":  {"zzzzzzzz", nil, []string{"tools/list"}},
		"a wrong argument":      {"list_tasks", map[string]any{"pagesize": 5}, []string{"pageSize"}},
		"an unknown run":        {"get_workflow_status", map[string]any{"run": "r-2"}, []string{"not_found", `"r-2"`, "list_workflows"}},
		"a panic":               {"get_workflow_status", map[string]any{"run": "panic"}, []string{"panic"}},
		"neither nor":           {"submit_workflow", map[string]any{}, []string{"Set either `definition` or `workflow`"}},
		"both":                  {"submit_workflow", map[string]any{"workflow": "a", "definition": "name: b"}, []string{"use only one"}},
		"a node that is none":   {"run_distributed", map[string]any{"command": "x", "nodes": []string{"n.2"}}, []string{`no node "n.2"`, "did you mean n.1?"}},
		"too many subagents":    {"dispatch_subagents", map[string]any{"prompt": "x", "count": 51}, []string{"count is 51; it must be 1 to 50"}},
		"a cursor that is none": {"stream_task_output", map[string]any{"run": "r-1", "cursor": "xyz"}, []string{"cursor"}},
	} {
		text, isError := use(t, session, test.tool, test.arguments)
		if !isError {
			t.Errorf("%s is no error: %s", name, text)
		}
		for _, part := range test.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the error lacks %q: %s", name, part, text)
			}
		}
	}
}

// TestEveryProblemOfADefinitionHasAPosition validates a definition with two problems and one without.
func TestEveryProblemOfADefinitionHasAPosition(t *testing.T) {
	session := connectToFleet(t)
	bad := "name: x\ntasks:\n  a: {type: shel, dependOn: [b]}\n"
	text, isError := use(t, session, "validate_definition", map[string]any{"definition": bad})
	var answer struct {
		Valid    bool
		Problems []struct {
			Line, Column  int
			Path, Message string
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || isError || answer.Valid || len(answer.Problems) != 2 {
		t.Fatalf("%s %v", text, err)
	}
	if p := answer.Problems[1]; p.Line != 3 || p.Column != 19 || p.Path != "tasks.a.dependOn" {
		t.Errorf("%+v", p)
	}
	text, isError = use(t, session, "validate_definition", map[string]any{"definition": map[string]any{
		"name": "x", "tasks": map[string]any{
			"b": map[string]any{"type": "shell", "spec": map[string]any{"command": "true"}, "dependsOn": []string{"a"}},
			"a": map[string]any{"type": "shell", "spec": map[string]any{"command": "true"}},
		},
	}})
	if isError || !strings.Contains(text, `"order":["a","b"]`) || !strings.Contains(text, `"valid":true`) {
		t.Errorf("%s", text)
	}
}

// TestRunDistributedHasATaskForEachNode checks that nodes with similar names get distinct task names.
func TestRunDistributedHasATaskForEachNode(t *testing.T) {
	session := connectToFleet(t)
	text, isError := use(t, session, "run_distributed", map[string]any{"command": "x", "nodes": []string{"n.1", "n_1", "n.1"}, "preview": true})
	for _, part := range []string{`"taskCount":2`, `"task":"n_1"`, `"task":"n_1-1"`, "n_1 is offline"} {
		if isError || !strings.Contains(text, part) {
			t.Errorf("the preview lacks %s: %s", part, text)
		}
	}
}

// TestSubagentsAreInstancesOfOneTask checks that the texts of the caller are data of the run, not expressions of its definition.
func TestSubagentsAreInstancesOfOneTask(t *testing.T) {
	f := newFleet()
	var submitted *v1.SubmitRunRequest
	servicetest.Answer(f, switchyardv1connect.RunServiceSubmitRunProcedure, func(_ context.Context, req *v1.SubmitRunRequest) (*v1.SubmitRunResponse, error) {
		submitted = req
		return &v1.SubmitRunResponse{Id: "r-1"}, nil
	})
	text, isError := use(t, connectTo(t, New(Config{Services: servicesOf(f)})), "dispatch_subagents", map[string]any{
		"prompt": "explain ${{ github.sha }}", "count": 3, "contextSummary": "we read", "tools": []string{"files"}, "idempotencyKey": "k",
	})
	if isError || text != `{"run":"r-1"}` || submitted.GetIdempotencyKey() != "k" {
		t.Fatalf("%s %v", text, submitted)
	}
	if _, err := definition.Complete(submitted.GetDefinition()); err != nil {
		t.Error(err)
	}
	agents := submitted.GetDefinition().GetTasks()["agents"]
	want := map[string]any{"prompt": "${{ workflow.input.prompt }}", "contextSummary": "${{ workflow.input.contextSummary }}", "tools": []any{"files"}, "model": ""}
	if diff := cmp.Diff(want, agents.GetSpec().AsMap()); diff != "" || agents.GetParallel().GetNumberValue() != 3 {
		t.Errorf("%v (-want +got):\n%s", agents, diff)
	}
	if diff := cmp.Diff(map[string]any{"prompt": "explain ${{ github.sha }}", "contextSummary": "we read"}, submitted.GetInput().AsMap()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStatusOfALargeRunIsSmall checks that the status of a run with 1,000 tasks stays below 8 KB, text and structured content
// together, and that its pages cover all tasks.
func TestStatusOfALargeRunIsSmall(t *testing.T) {
	session := connectToFleet(t)
	seen := map[string]bool{}
	for token := ""; ; {
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_workflow_status", Arguments: map[string]any{"run": "r-1", "pageToken": token}})
		if err != nil || res.IsError {
			t.Fatalf("%+v %v", res, err)
		}
		whole, err := json.Marshal(res)
		if err != nil || len(whole) > 8000 {
			t.Fatalf("the answer has %d bytes: %v", len(whole), err)
		}
		var page struct {
			Tasks         []struct{ Name string }
			Total         int
			NextPageToken string
		}
		if err := json.Unmarshal([]byte(res.Content[0].(*sdk.TextContent).Text), &page); err != nil || page.Total != 1000 {
			t.Fatalf("%+v %v", page, err)
		}
		for _, task := range page.Tasks {
			seen[task.Name] = true
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	if len(seen) != 1000 {
		t.Errorf("the pages have %d tasks", len(seen))
	}
}

func TestResourcesAreRead(t *testing.T) {
	session := connectToFleet(t)
	for uri, want := range map[string]string{
		guideURI:                        "# The language of definitions",
		"switchyard://nodes":            `"name":"n.1"`,
		"switchyard://sessions":         `{"items":[{"session":"s1","node":"n.1","state":"active"}]}`,
		"switchyard://nodes/n.1":        `"state":"active"`,
		"switchyard://dead-letters":     `"run":"r-1"`,
		"switchyard://runs/r-1/tasks/a": `"state":"running"`,
	} {
		res, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || !strings.Contains(strings.ReplaceAll(res.Contents[0].Text, " ", ""), strings.ReplaceAll(want, " ", "")) {
			t.Errorf("%s: %+v %v", uri, res, err)
		}
	}
	if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "switchyard://runs/r-2"}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("%v", err)
	}
}

func TestPromptAsksForAWorkflow(t *testing.T) {
	session := connectToFleet(t)
	got, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "write_workflow", Arguments: map[string]string{"goal": "build the site"}})
	if err != nil || len(got.Messages) != 2 || !strings.Contains(got.Messages[0].Content.(*sdk.TextContent).Text, "build the site") {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "write_workflow"}); err == nil {
		t.Error("a prompt without a goal is given")
	}
}
