package tasks

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/testneeds"
	"switchyard/gateway/singletask"
	"switchyard/gateway/submission"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// fakeRuns starts no runs. A task with the name "bad" has a problem.
type fakeRuns struct {
	mu   sync.Mutex
	keys map[string]string // ids by idempotency key
}

func (*fakeRuns) Prepare(_ context.Context, req *v1.SubmitRunRequest) (*historyv1.RunInput, source.Problems, error) {
	if def := req.GetDefinition(); def.GetTasks()["bad"] != nil {
		return nil, nil, source.Problems{{Path: "tasks.bad.spec.command", Message: "is missing"}}
	}
	return &historyv1.RunInput{Definition: req.GetDefinition(), Batch: req.GetBatch()}, nil, nil
}

func (r *fakeRuns) Start(_ context.Context, in *historyv1.RunInput, _, key string) (id string, existed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id := r.keys[key]; id != "" {
		return id, true, nil
	}
	if in.GetDefinition().GetName() == "broken" {
		return "", false, errors.New("the server is down")
	}
	r.keys[key] = key + "-run"
	return r.keys[key], false, nil
}

// TestBatchReportsTheOutcomeOfEachTask sends a batch twice under one key.
func TestBatchReportsTheOutcomeOfEachTask(t *testing.T) {
	t.Parallel()
	s := Service{Runs: &fakeRuns{keys: map[string]string{}}}
	req := &v1.SubmitTasksRequest{IdempotencyKey: "k"}
	for _, name := range []string{"good", "bad", "broken"} {
		req.Tasks = append(req.Tasks, &v1.SubmitTaskRequest{Name: name, Type: "shell"})
	}
	req.Tasks = append(req.Tasks, &v1.SubmitTaskRequest{Name: "other", Type: "shell", Batch: "another"})
	for _, existed := range []bool{false, true} {
		res, err := s.SubmitTasks(t.Context(), connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		items := res.Msg.GetItems()
		if res.Msg.GetAccepted() != 1 || res.Msg.GetRefused() != 3 || items[0].GetId() != "k[0]-run" || items[0].GetExisted() != existed {
			t.Errorf("got %v", res.Msg)
		}
		if problems := items[1].GetError().GetProblems(); len(problems) != 1 || problems[0].GetPath() != "spec.command" {
			t.Errorf("the bad task has the problems %v", problems)
		}
		if text := items[2].GetError().GetMessage(); !strings.Contains(text, "the server is down") {
			t.Errorf("the broken task has the error %q", text)
		}
		if code := items[3].GetError().GetCode(); code != "invalid_argument" {
			t.Errorf("the task of another batch has the code %s", code)
		}
	}
}

// TestSubmitTasksReportsUnstartedTasks checks that tasks that were not started in time are reported as such.
func TestSubmitTasksReportsUnstartedTasks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := Service{Runs: &fakeRuns{keys: map[string]string{}}}
	res, err := s.SubmitTasks(ctx, connect.NewRequest(&v1.SubmitTasksRequest{Tasks: []*v1.SubmitTaskRequest{{Type: "shell"}}}))
	if err != nil || res.Msg.GetRefused() != 1 || res.Msg.GetItems()[0].GetError().GetCode() != "canceled" {
		t.Errorf("%v, %v", res, err)
	}
}

func TestBatchesOfCallersDiffer(t *testing.T) {
	t.Parallel()
	ann, bob := batchID("", submission.ScopedKey("ann", "k")), batchID("", submission.ScopedKey("bob", "k"))
	if ann == bob || ann != batchID("", submission.ScopedKey("ann", "k")) {
		t.Errorf("the batches are %s and %s", ann, bob)
	}
}

// TestProblemsNameFieldsOfTheRequest checks that each problem of a task has a path in the request, and is reported once.
func TestProblemsNameFieldsOfTheRequest(t *testing.T) {
	t.Parallel()
	spec := func(field string) *structpb.Struct {
		return &structpb.Struct{Fields: map[string]*structpb.Value{field: structpb.NewStringValue("true")}}
	}
	for path, req := range map[string]*v1.SubmitTaskRequest{
		"spec.comand":            {Name: "a", Type: "shell", Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"command": structpb.NewStringValue("true"), "comand": structpb.NewStringValue("true")}}},
		"spec.command":           {Name: "a", Type: "shell"},
		"type":                   {Name: "a", Type: "shel"},
		"priority":               {Type: "shell", Spec: spec("command"), Priority: 11},
		"retry.maxRetries":       {Type: "shell", Spec: spec("command"), Retry: &v1.RetryPolicy{MaxRetries: proto.Int32(-1)}},
		"secretEnv.T":            {Type: "shell", Spec: spec("command"), SecretEnv: map[string]string{"T": "hunter2-hunter2"}},
		"constraints.targetNode": {Type: "shell", Spec: spec("command"), Constraints: &v1.Constraints{TargetNode: "A!"}},
		"name":                   {Name: "a.b", Type: "shell", Spec: spec("command")},
	} {
		_, err := definition.CompleteChecked(singletask.Definition(req))
		problems, _ := errors.AsType[source.Problems](err)
		if moved := problemsOfTask(problems, singletask.Name(req)); len(moved) != 1 || moved[0].GetPath() != path || strings.Contains(moved[0].GetMessage(), "tasks.") {
			t.Errorf("%s: %v", path, moved)
		}
	}
}
