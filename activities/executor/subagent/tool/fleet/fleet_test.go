package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/subagent/tool"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	"switchyard/gateway/mcp"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// gateway is a scripted gateway with the real MCP server.
type gateway struct {
	switchyardv1connect.UnimplementedRunServiceHandler
	mu      sync.Mutex
	submits []*v1.SubmitRunRequest
	// ended is closed when the run has ended; tasks, which is set before that, holds its tasks and instances.
	ended  chan struct{}
	tasks  map[string]proto.Message
	tokens []string
}

func (g *gateway) SubmitRun(_ context.Context, req *connect.Request[v1.SubmitRunRequest]) (*connect.Response[v1.SubmitRunResponse], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, earlier := range g.submits {
		if earlier.GetIdempotencyKey() == req.Msg.GetIdempotencyKey() {
			if !proto.Equal(earlier, req.Msg) {
				return nil, connect.NewError(connect.CodeAlreadyExists, errors.New("another request"))
			}
			return connect.NewResponse(&v1.SubmitRunResponse{Id: "r-1", Existed: true}), nil
		}
	}
	if d := req.Msg.GetDefinition(); d != nil {
		if _, err := definition.Complete(d); err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, err)
		}
	}
	g.submits = append(g.submits, req.Msg)
	return connect.NewResponse(&v1.SubmitRunResponse{Id: "r-1"}), nil
}

func (g *gateway) state() string {
	select {
	case <-g.ended:
		return v1.RunCompleted
	default:
		return v1.RunRunning
	}
}

func (g *gateway) WatchRun(ctx context.Context, req *connect.Request[v1.WatchRunRequest], stream *connect.ServerStream[v1.WatchRunResponse]) error {
	if err := stream.Send(&v1.WatchRunResponse{Run: &v1.Run{Id: "r-1", State: g.state()}}); err != nil {
		return err
	}
	select {
	case <-g.ended:
		return stream.Send(&v1.WatchRunResponse{Run: &v1.Run{Id: "r-1", State: v1.RunCompleted}})
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gateway) GetRun(context.Context, *connect.Request[v1.GetRunRequest]) (*connect.Response[v1.GetRunResponse], error) {
	return connect.NewResponse(&v1.GetRunResponse{Run: &v1.Run{Id: "r-1", State: g.state()}}), nil
}

func (g *gateway) GetRunTask(_ context.Context, req *connect.Request[v1.GetRunTaskRequest]) (*connect.Response[v1.GetRunTaskResponse], error) {
	switch found := g.tasks[req.Msg.GetTask()].(type) {
	case *v1.Task:
		return connect.NewResponse(&v1.GetRunTaskResponse{Task: found}), nil
	case *v1.Instance:
		return connect.NewResponse(&v1.GetRunTaskResponse{Instance: found}), nil
	}
	return nil, connect.NewError(connect.CodeNotFound, errors.New("no such task"))
}

// start serves a gateway and returns the tools for it.
func (g *gateway) start(t *testing.T, o Options) *Fleet {
	t.Helper()
	g.ended = make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewRunServiceHandler(g))
	server := httptest.NewUnstartedServer(nil)
	server.Start()
	handler := mcp.Handler(mcp.Config{Services: mcp.NewServices(server.Client(), server.URL)})
	mux.HandleFunc(mcp.Path, func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.tokens = append(g.tokens, r.Header.Get("Authorization"))
		g.mu.Unlock()
		handler.ServeHTTP(w, r.WithContext(auth.With(r.Context(), &auth.Principal{Role: v1.Role_ROLE_USER})))
	})
	server.Config.Handler = mux
	o.Gateway = server.URL + "/"
	f, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		server.Client().CloseIdleConnections()
		server.Close()
	})
	return f
}

func find(t *testing.T, f *Fleet, name string) tool.Tool {
	t.Helper()
	i := slices.IndexFunc(f.Tools(), func(each tool.Tool) bool { return each.Definition().Name == name })
	if i < 0 {
		t.Fatalf("there is no tool %s", name)
	}
	return f.Tools()[i]
}

func use(t *testing.T, f *Fleet, name, id, arguments string) tool.Outcome {
	t.Helper()
	outcome, err := find(t, f, name).Call(t.Context(), tool.Call{ID: id, Arguments: []byte(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func agent() Options {
	return Options{
		Token: "a$b", Run: "plan-20260115", Task: "planner", KeyPrefix: "plan-20260115/planner",
		Defaults: &v1.SubagentSpec{
			Prompt: "the planner's own", Model: "m ${{ x }}", Provider: "openai", BaseUrl: "http://127.0.0.1:1/v1", Tools: []string{"shell", "fleet"}, MaxTurns: 7,
		},
		SecretEnv: map[string]string{"OPENAI_API_KEY": "store:openai"},
	}
}

func TestToolsOfTheGatewayAreOffered(t *testing.T) {
	t.Parallel()
	g := &gateway{}
	f := g.start(t, agent())
	var names []string
	for _, each := range f.Tools() {
		names = append(names, each.Definition().Name)
		if strings.Contains(string(each.Definition().Schema), keyArgument) {
			t.Errorf("the model may choose the key of %s", each.Definition().Name)
		}
	}
	for _, want := range append(slices.Clone(offered), askName, dispatchName) {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s: %v", want, names)
		}
	}
	if !slices.Contains(g.tokens, "Bearer a$b") {
		t.Errorf("the token is not sent: %v", g.tokens)
	}
	if got := use(t, f, "get_workflow_status", "1", `{}`); !got.IsError || !strings.Contains(got.Text, "run is missing") {
		t.Errorf("%+v", got)
	}
}

func TestRepeatedCallStartsNothingTwice(t *testing.T) {
	t.Parallel()
	g := &gateway{}
	f := g.start(t, agent())
	const arguments = `{"workflow":"release","input":{"n":1},"batch":"mine","idempotencyKey":"mine"}`
	first, again := use(t, f, "submit_workflow", "call_1", arguments), use(t, f, "submit_workflow", "call_1", arguments)
	if first.IsError || again.IsError || !strings.Contains(again.Text, `"existed":true`) || len(g.submits) != 1 {
		t.Fatalf("%+v %+v", first, again)
	}
	if got := g.submits[0]; got.GetIdempotencyKey() != "plan-20260115/planner/call_1" || got.GetBatch() != "plan-20260115" {
		t.Errorf("%v", got)
	}
	if other := use(t, f, "submit_workflow", "call_2", arguments); other.IsError || len(g.submits) != 2 {
		t.Errorf("%+v", other)
	}
}

func TestSubagentsInheritTheSpecOfTheirAgent(t *testing.T) {
	t.Parallel()
	output := func(fields map[string]any) *v1.TaskResult {
		s, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		return &v1.TaskResult{Output: s}
	}
	g := &gateway{tasks: map[string]proto.Message{
		"agents[0]": &v1.Instance{State: v1.TaskCompleted, Result: output(map[string]any{"text": "blue"})},
		"agents[1]": &v1.Instance{State: v1.TaskFailed, Reason: v1.ReasonMaxTurns, Error: "the agent has taken 7 turns"},
		"agents[2]": &v1.Instance{State: v1.TaskCompleted, Result: output(map[string]any{"colour": "red"})},
	}}
	f := g.start(t, agent())
	const arguments = `{"prompts":["one ${{ y }}","two","three"],"contextSummary":"so far","timeoutSeconds":1}`
	open := use(t, f, dispatchName, "call_1", arguments)
	if open.IsError || !strings.Contains(open.Text, "continue as the run r-1") {
		t.Errorf("%+v", open)
	}
	close(g.ended)
	got := use(t, f, dispatchName, "call_1", arguments)
	want := "2 of 3 subagents have completed (run r-1).\n\n## Subagent 1\nblue\n\n## Subagent 2: failed max_turns\nthe agent has taken 7 turns\n\n## Subagent 3\n{\"colour\":\"red\"}"
	if got != (tool.Outcome{Text: want}) || len(g.submits) != 1 {
		t.Errorf("%d runs: %+v", len(g.submits), got)
	}
	submitted := g.submits[0]
	task := submitted.GetDefinition().GetTasks()[agentsTask]
	spec := task.GetSpec().AsMap()
	if task.GetType() != v1.TypeSubagent || spec["prompt"] != "${{ input.item }}" || spec["contextSummary"] != "${{ workflow.input.contextSummary }}" ||
		spec["model"] != "${{ workflow.input.literals[0] }}" || spec["maxTurns"] != 7.0 || spec["provider"] != "openai" || len(spec["tools"].([]any)) != 1 {
		t.Errorf("%v", spec)
	}
	input := submitted.GetInput().AsMap()
	if task.GetSecretEnv()["OPENAI_API_KEY"] != "store:openai" || input["prompts"].([]any)[0] != "one ${{ y }}" || input["literals"].([]any)[0] != "m ${{ x }}" || submitted.GetBatch() == "" {
		t.Errorf("%v %v", task, input)
	}
	for arguments, want := range map[string]string{
		`{}`: "`prompt` or `prompts` is required", `{"prompt":"a","prompts":["b"]}`: "give either", `{"prompt":"a","count":51}`: "1 to 50 subagents",
		`{"prompts":["a",""]}`: "prompts[1] is empty", `{"prompt":"a","timeoutSeconds":-1}`: "timeoutSeconds", `[`: "invalid arguments",
	} {
		if got := use(t, f, dispatchName, "bad", arguments); !got.IsError || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
}

func TestPersonDecides(t *testing.T) {
	t.Parallel()
	decided, err := structpb.NewStruct(map[string]any{"by": "ann", "reason": "not on a Friday"})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{tasks: map[string]proto.Message{questionTask: &v1.Task{State: v1.TaskRejected, Result: &v1.TaskResult{Output: decided}}}}
	f := g.start(t, agent())
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	begin := time.Now()
	if _, err := find(t, f, askName).Call(ctx, tool.Call{ID: "q", Arguments: []byte(`{"message":"Deploy ${{ z }}?"}`)}); !errors.Is(err, context.Canceled) || time.Since(begin) > 30*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
	close(g.ended)
	if got := use(t, f, askName, "q", `{"message":"Deploy ${{ z }}?"}`); got != (tool.Outcome{Text: `{"by":"ann","decision":"rejected","reason":"not on a Friday","run":"r-1"}`}) {
		t.Errorf("%+v", got)
	}
	if len(g.submits) != 1 {
		t.Errorf("%d questions were asked", len(g.submits))
	}
}

func TestFleetNeedsAGateway(t *testing.T) {
	t.Parallel()
	if _, err := New(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "SWITCHYARD_GATEWAY") {
		t.Errorf("%v", err)
	}
	if _, err := New(t.Context(), Options{Gateway: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}
