package gateway

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

func TestSubmitReportsEveryProblem(t *testing.T) {
	t.Parallel()
	f := start(t)
	bad := &v1.Definition{Name: "Bad Name", Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shel", Priority: 11}}}
	for name, test := range map[string]struct {
		req      *v1.SubmitRunRequest
		messages []string
		line     int32
	}{
		"document": {
			req: &v1.SubmitRunRequest{
				File: "bad.yaml",
				Source: &v1.SubmitRunRequest_Document{
					Document: "name: bad\ntasks:\n  a: { type: shell, spec: { command: 'true' }, dependsOn: [b] }\n  c: { type: shel, spec: {} }\n",
				},
			},
			messages: []string{"b", "shel"},
			line:     3,
		},
		"message": {
			req:      &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Definition{Definition: bad}},
			messages: []string{"Bad Name", "shel", "11"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.client.SubmitRun(t.Context(), connect.NewRequest(test.req))
			wantCode(t, "submit", err, connect.CodeInvalidArgument)
			problems := problemsOf(t, err)
			if len(problems) < 2 {
				t.Fatalf("the problems are %v", problems)
			}
			if problems[0].GetLine() != test.line {
				t.Errorf("the first problem is on line %d, not %d", problems[0].GetLine(), test.line)
			}
			for _, message := range test.messages {
				if !strings.Contains(err.Error(), message) {
					t.Errorf("%q is not in %q", message, err)
				}
			}
		})
	}
}

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

func TestSubmitAcceptsADefinitionMessage(t *testing.T) {
	t.Parallel()
	f := start(t)
	spec, _ := structpb.NewStruct(map[string]any{"command": "true"})
	def := &v1.Definition{Name: "as-message", Description: "says hello", Tasks: map[string]*v1.TaskDefinition{
		"a": {Type: "shell", Spec: spec}, "b": {Type: "shell", Spec: spec, DependsOn: []string{"a"}},
	}}
	res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Definition{Definition: def},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if run := f.get(t, res.Msg.GetId()); len(run.GetTasks()) != 2 || run.GetTasks()["b"].GetDependsOn()[0] != "a" {
		t.Errorf("the run is %v", run)
	}
	desc, err := temporalClient.DescribeWorkflow(t.Context(), res.Msg.GetId(), "")
	if err != nil {
		t.Fatal(err)
	}
	if summary, _ := desc.GetStaticSummary(); summary != "as-message: 2 tasks" {
		t.Errorf("the summary is %q", summary)
	}
	if details, _ := desc.GetStaticDetails(); details != "says hello\n\n- `a` (shell)\n- `b` (shell) after a\n" {
		t.Errorf("the details are %q", details)
	}
	end(t, res.Msg.GetId(), "completed")
}

func TestSubmitRefusesLargeRequests(t *testing.T) {
	t.Parallel()
	f := start(t)
	input, _ := structpb.NewStruct(map[string]any{"text": strings.Repeat("x", 2_100_000)})
	_, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Document{Document: document("large", "a")}, Input: input,
	}))
	wantCode(t, "a large input", err, connect.CodeInvalidArgument)
	noise := make([]byte, 2<<20)
	for i := range noise {
		noise[i] = ' ' + byte(rand.IntN(94))
	}
	spec, _ := structpb.NewStruct(map[string]any{"command": string(noise)})
	_, err = f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Definition{Definition: &v1.Definition{Name: "large", Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shell", Spec: spec}}}},
	}))
	wantCode(t, "a large definition", err, connect.CodeInvalidArgument)
	_, err = f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Document{Document: strings.Repeat("x", maxMessageBytes+1)},
	}))
	wantCode(t, "a message over the limit", err, connect.CodeResourceExhausted)
	_, err = f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{}))
	wantCode(t, "neither document nor definition", err, connect.CodeInvalidArgument)
}

// TestSubmitRefusesInvalidOptions checks that unusable run options are refused.
func TestSubmitRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	f := start(t)
	for name, options := range map[string]*v1.RunOptions{
		"heartbeat time-out": {HeartbeatTimeout: durationpb.New(time.Millisecond)},
		"placement time-out": {PlacementTimeout: durationpb.New(-time.Second)},
	} {
		_, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
			Source: &v1.SubmitRunRequest_Document{Document: document("optional", "a")}, Options: options,
		}))
		wantCode(t, name, err, connect.CodeInvalidArgument)
	}
}
