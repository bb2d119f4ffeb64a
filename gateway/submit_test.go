package gateway

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

func problemsOf(t *testing.T, err error) []*v1.Problem {
	t.Helper()
	failed, ok := err.(*connect.Error)
	if !ok || len(failed.Details()) != 1 {
		t.Fatalf("the error has no detail: %v", err)
	}
	value, err := failed.Details()[0].Value()
	if err != nil {
		t.Fatal(err)
	}
	return value.(*v1.ValidationFailure).GetProblems()
}

// messageRequest returns a request to submit a definition as a message.
func messageRequest(def *v1.Definition) *v1.SubmitRunRequest {
	return &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Definition{Definition: def}}
}

// command returns the spec of a shell task.
func command(text string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"command": structpb.NewStringValue(text)}}
}

func TestSubmitReportsEveryProblem(t *testing.T) {
	t.Parallel()
	f := start(t)
	for line, req := range map[int32]*v1.SubmitRunRequest{
		3: submitRequest("name: bad\ntasks:\n  a: { type: shell, spec: { command: 'true' }, dependsOn: [b] }\n  c: { type: shel, spec: {} }\n"),
		0: messageRequest(&v1.Definition{Name: "bad", Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shell", Spec: command("true"), DependsOn: []string{"b"}}, "c": {Type: "shel"}}}),
	} {
		problems := problemsOf(t, refused(t, "submit", f.client.SubmitRun, req, connect.CodeInvalidArgument, "b", "shel"))
		if len(problems) < 2 || problems[0].GetLine() != line {
			t.Errorf("the problems are %v, want the first one on line %d", problems, line)
		}
	}
}

func TestSubmitAcceptsADefinitionMessage(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := do(t, f.client.SubmitRun, messageRequest(&v1.Definition{Name: "as-message", Description: "says hello", Tasks: map[string]*v1.TaskDefinition{
		"a": {Type: "shell", Spec: command("true")}, "b": {Type: "shell", Spec: command("true"), DependsOn: []string{"a"}},
	}})).GetId()
	terminate(t, id)
	if run := f.get(t, id); len(run.GetTasks()) != 2 || run.GetTasks()["b"].GetDependsOn()[0] != "a" {
		t.Errorf("the run is %v", run)
	}
	desc, err := temporalClient.DescribeWorkflow(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	summary, _ := desc.GetStaticSummary()
	if details, _ := desc.GetStaticDetails(); summary != "as-message: 2 tasks" || details != "says hello\n\n- `a` (shell)\n- `b` (shell) after a\n" {
		t.Errorf("Temporal shows %q, %q", summary, details)
	}
}

// TestSubmitRefusesWhatNoRunCanHold submits what is too large, and options that no run can keep.
func TestSubmitRefusesWhatNoRunCanHold(t *testing.T) {
	t.Parallel()
	f := start(t)
	input, _ := structpb.NewStruct(map[string]any{"text": strings.Repeat("x", 2_100_000)})
	noise := make([]byte, 2<<20)
	for i := range noise {
		noise[i] = ' ' + byte(rand.IntN(94))
	}
	source := submitRequest(document("large", "a")).GetSource()
	for what, test := range map[string]struct {
		req  *v1.SubmitRunRequest
		code connect.Code
	}{
		"a large input":      {&v1.SubmitRunRequest{Source: source, Input: input}, connect.CodeInvalidArgument},
		"a large definition": {messageRequest(&v1.Definition{Name: "large", Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shell", Spec: command(string(noise))}}}), connect.CodeInvalidArgument},
		"a large message":    {submitRequest(strings.Repeat("x", maxMessageBytes+1)), connect.CodeResourceExhausted},
		"nothing":            {&v1.SubmitRunRequest{}, connect.CodeInvalidArgument},
		"a heartbeat of 1ms": {&v1.SubmitRunRequest{Source: source, Options: &v1.RunOptions{HeartbeatTimeout: durationpb.New(time.Millisecond)}}, connect.CodeInvalidArgument},
		"a negative timeout": {&v1.SubmitRunRequest{Source: source, Options: &v1.RunOptions{PlacementTimeout: durationpb.New(-time.Second)}}, connect.CodeInvalidArgument},
	} {
		refused(t, what, f.client.SubmitRun, test.req, test.code)
	}
}

// TestLargeDefinitionIsRun runs a document of 1 MiB that its defaults expand to much more.
func TestLargeDefinitionIsRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	var b strings.Builder
	fmt.Fprintf(&b, "name: huge\ndefaults: { type: shell, env: { A: \"%s\" } }\ntasks:\n", strings.Repeat("\\u0001", 2000))
	for i := range 600 {
		fmt.Fprintf(&b, "  t%d: { spec: { command: 'echo %s' } }\n", i, strings.Repeat(fmt.Sprint(i*7919), 1600/len(fmt.Sprint(i*7919))))
	}
	if b.Len() < 900_000 || b.Len() > 1<<20 {
		t.Fatalf("the document has %d bytes", b.Len())
	}
	in := f.inputOf(t, f.submitDocument(t, b.String()))
	if n := len(in.GetDefinition().GetTasks()); n != 600 || len(in.GetDefinition().GetTasks()["t9"].GetEnv()["A"]) != 2000 {
		t.Errorf("it has %d tasks", n)
	}
}

// TestIdempotencyKeyStartsOneRun submits the same request and others under one key, while the run is open and after its
// end.
func TestIdempotencyKeyStartsOneRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	input, _ := structpb.NewStruct(map[string]any{"b": 1, "a": []any{"x", true}})
	other, _ := structpb.NewStruct(map[string]any{"a": []any{"x", false}, "b": 1})
	request := func(text string, input *structpb.Struct) *v1.SubmitRunRequest {
		req := submitRequest(text)
		req.Input, req.IdempotencyKey = input, "k"
		return req
	}
	first := do(t, f.client.SubmitRun, request(document("keyed", "a"), input))
	id := first.GetId()
	terminate(t, id)
	if first.GetExisted() || !strings.HasPrefix(id, "keyed-") {
		t.Errorf("got %v", first)
	}
	check := func(when string) {
		t.Helper()
		if run := do(t, f.client.GetRun, &v1.GetRunRequest{Id: id}).GetRun(); run.GetIdempotencyKey() != "k" {
			t.Errorf("%s: %v", when, run)
		}
		// The same definition in another notation.
		if got := do(t, f.client.SubmitRun, request("tasks: { a: { spec: { command: 'true' }, type: shell } }\nname: keyed\n", input)); !got.GetExisted() || got.GetId() != id {
			t.Errorf("%s, the same: %v", when, got)
		}
		refused(t, when+", another definition", f.client.SubmitRun, request(document("keyed", "b"), input), connect.CodeAlreadyExists, id)
		refused(t, when+", another workflow", f.client.SubmitRun, request(document("renamed", "a"), input), connect.CodeAlreadyExists, id)
		refused(t, when+", another input", f.client.SubmitRun, request(document("keyed", "a"), other), connect.CodeAlreadyExists)
	}
	check("open")
	before := f.describe(t, id).GetWorkflowExecutionInfo().GetExecution().GetRunId()
	signal(t, id, endSignal, "continued")
	eventually(t, "it continues in another execution", func() bool {
		return f.describe(t, id).GetWorkflowExecutionInfo().GetExecution().GetRunId() != before
	})
	check("continued")
	end(t, id, "failed")
	check("ended")
	f.retryRun(t, id)
	check("again")
}

// TestConcurrentSubmitsWithOneKeyStartOneRun submits the same request concurrently from many callers; exactly one starts the run.
func TestConcurrentSubmitsWithOneKeyStartOneRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	req := submitRequest(document("hurried", "a"))
	req.IdempotencyKey = "now"
	var mu sync.Mutex
	var wg sync.WaitGroup
	fresh, ids := 0, map[string]bool{}
	for range 8 {
		wg.Go(func() {
			res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(req))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			ids[res.Msg.GetId()] = true
			if !res.Msg.GetExisted() {
				fresh++
			}
		})
	}
	wg.Wait()
	if fresh != 1 || len(ids) != 1 {
		t.Errorf("%d were first, of %v", fresh, ids)
	}
	for id := range ids {
		end(t, id, "completed")
	}
}

// TestRunsGetTheDefaultsOfTheFleet checks that submitted and scheduled runs are started with the defaults of the fleet.
func TestRunsGetTheDefaultsOfTheFleet(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{Defaults: definition.RunDefaults{Timeout: time.Hour, FailurePolicy: "halt", PickupTimeout: time.Minute}})
	hasDefaults := func(what string, in *historyv1.RunInput) {
		t.Helper()
		if def := in.GetDefinition(); def.GetTasks()["a"].GetTimeout() != "1h0m0s" || def.GetFailurePolicy() != "halt" || in.GetOptions().GetPickupTimeout().AsDuration() != time.Minute {
			t.Errorf("%s starts with %v", what, in)
		}
	}
	text := document("filled", "a")
	hasDefaults("a run that is submitted", f.inputOf(t, f.submitDocument(t, text)))
	f.putWorkflow(t, text)
	described, err := temporalClient.ScheduleClient().GetHandle(t.Context(), names.StoredWorkflowID("filled")).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := &historyv1.RunInput{}
	action := described.Schedule.Action.(*client.ScheduleWorkflowAction)
	if err := converter.GetDefaultDataConverter().FromPayload(action.Args[0].(*commonpb.Payload), in); err != nil {
		t.Fatal(err)
	}
	hasDefaults("a run of a schedule", in)
}

// TestApprovalCoversWhatWasSubmitted changes what an approval covers: stored workflows and environments are replaced, here and below,
// and retries give agents new limits or repeat tasks. Each version of the run has to be approved by its number.
func TestApprovalCoversWhatWasSubmitted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := startLocked(t, dir, func(c *Config) { c.ApproveUserRuns = true })
	dial := func(role string) (runs switchyardv1connect.RunServiceClient, token string) {
		token, _ = f.token(t, "name-of-"+role, role)
		return f.dialAs(t, token), token
	}
	user, userToken := dial(v1.RoleUser)
	operator, token := dial(v1.RoleOperator)
	put := func(name, tasks string) {
		t.Helper()
		answer(t, dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, token).PutWorkflow, putRequest("name: "+name+"\ntasks: {"+tasks+"}"))
	}
	environment := func(digest string) {
		t.Helper()
		if err := f.config.Store.PutMessage(t.Context(), storekey.EnvironmentName("covered"), &v1.Environment{Name: "covered", Digest: digest}); err != nil {
			t.Fatal(err)
		}
	}
	environment("first")
	put("covered-inner", "a: {type: shell, spec: {command: first}}, "+
		"b: {type: run, spec: {definition: {name: y, tasks: {c: {type: container, spec: {environment: covered}}}}}}")
	put("covered-outer", "a: {type: run, spec: {workflow: covered-inner}}")
	f.client = user
	id := f.submitDocument(t, "name: covered\ntasks: {writer: {type: subagent, spec: {prompt: write, model: m, maxTurns: 3}}, "+
		`inline: {type: run, spec: {definition: {name: x, tasks: {b: {type: run, condition: "workflow.input.n == 1", spec: {workflow: covered-outer}}}}}}}`)
	environment("second")
	put("covered-inner", "a: {type: shell, spec: {command: second}}")
	set(t, id, "writer", 1, &v1.Task{State: "failed", Type: "subagent"})
	raised := map[string]*v1.AgentLimits{"writer": {MaxTurns: 9}}
	unlocked := startLocked(t, dir).dialAs(t, userToken) // a gateway that requires no approval
	for generation, retry := range []struct {
		by       switchyardv1connect.RunServiceClient
		request  *v1.RetryRunRequest
		version  int32
		approved bool // by the role of who retries
	}{
		{user, &v1.RetryRunRequest{}, 0, false},
		{user, &v1.RetryRunRequest{Limits: raised}, 1, false},
		{user, &v1.RetryRunRequest{Limits: raised}, 1, false},
		{operator, &v1.RetryRunRequest{Limits: map[string]*v1.AgentLimits{"writer": {MaxTurns: 10}}}, 2, true},
		{unlocked, &v1.RetryRunRequest{Limits: raised}, 3, false},
		{user, &v1.RetryRunRequest{From: []string{"inline"}}, 4, false},
		{operator, &v1.RetryRunRequest{From: []string{"writer"}}, 5, true},
		{user, &v1.RetryRunRequest{}, 5, true},
	} {
		end(t, id, "failed")
		retry.request.Id = id
		do(t, retry.by.RetryRun, retry.request)
		in := f.inputOf(t, id)
		if in.GetDefinitionVersion() != retry.version || in.GetNeedsApproval() == retry.approved {
			t.Errorf("generation %d: version %d, needs approval: %t", generation+1, in.GetDefinitionVersion(), in.GetNeedsApproval())
		}
		if got := in.GetWorkflows().GetDefinitions()["covered-inner"].GetTasks()["a"].GetSpec().AsMap()["command"]; got != "first" {
			t.Errorf("generation %d starts %v", generation+1, got)
		}
		if got := in.GetWorkflows().GetEnvironments().GetDigests()["covered"]; got != "first" {
			t.Errorf("generation %d starts the environment %q", generation+1, got)
		}
		other, remedy := int32(0), fmt.Sprintf("approve it with --definition-version %d", retry.version)
		if retry.version == 0 {
			other, remedy = 1, "approve it without --definition-version"
		}
		refused(t, "approve another version", operator.ApproveRun, &v1.ApproveRunRequest{Id: id, DefinitionVersion: other}, connect.CodeAborted, remedy)
		// The scripted run receives no decisions.
		refused(t, "approve what waits", operator.ApproveRun, &v1.ApproveRunRequest{Id: id, DefinitionVersion: retry.version}, connect.CodeAborted, "does not support")
		set(t, id, "writer", int32(generation)+2, &v1.Task{State: "failed", Type: "subagent"})
	}
	end(t, id, "failed")
	fresh := do(t, user.RerunRun, &v1.RerunRunRequest{Id: id}).GetId()
	if in := f.inputOf(t, fresh); in.GetDefinitionVersion() != 0 || in.GetWorkflows().GetDefinitions()["covered-inner"].GetTasks()["a"].GetSpec().AsMap()["command"] != "second" {
		t.Errorf("a copy starts with %v", in)
	}
	terminate(t, fresh)
}

// TestRunsOfUsersNeedApproval submits with each role to a gateway that requires approval for the runs of
// users.
func TestRunsOfUsersNeedApproval(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir(), func(c *Config) { c.ApproveUserRuns = true })
	clients := map[string]switchyardv1connect.RunServiceClient{}
	for _, role := range []string{v1.RoleUser, v1.RoleOperator, v1.RoleAdmin} {
		secret, _ := f.token(t, "name-of-"+role, role)
		clients[role] = f.dialAs(t, secret)
	}
	for role, client := range clients {
		f.client = client
		id := f.submit(t, "needs-approval", "a")
		rerun := do(t, client.RerunRun, &v1.RerunRunRequest{Id: id}).GetId()
		terminate(t, rerun)
		for _, started := range []string{id, rerun} {
			in := f.inputOf(t, started)
			if in.GetNeedsApproval() != (role == v1.RoleUser) || !in.GetSignedDecisions() || in.GetByRole() != role || in.GetBy() != "name-of-"+role {
				t.Errorf("a run of the role %s: %v", role, in)
			}
		}
		if frozen := f.inputOf(t, id).GetWorkflows(); (frozen != nil) != (role == v1.RoleUser) {
			t.Errorf("a run of the role %s has the frozen workflows %v", role, frozen)
		}
		want := "ask another operator"
		if role == v1.RoleUser {
			want = "needs the role"
		}
		refused(t, "approve a run of one's own, as "+role, client.ApproveRun, &v1.ApproveRunRequest{Id: id}, connect.CodePermissionDenied, want)
	}
}
