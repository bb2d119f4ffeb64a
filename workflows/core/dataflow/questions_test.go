package dataflow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
)

// asked returns a run with a pending and a queued task, and questions about them.
func asked(t *testing.T) *State {
	t.Helper()
	s := begin(t, &historyv1.RunInput{Definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"build": {Type: v1.TypeShell, Mutex: "m", Retry: &v1.RetryPolicy{When: "true"}},
		"test":  {Type: v1.TypeShell, Condition: "input.x"},
	}}})
	build, _ := s.core.Index("build")
	test, _ := s.core.Index("test")
	for _, q := range []Question{
		{Task: test, Kind: Condition},
		{Task: build, Kind: Lock, Claim: s.core.Task(build).Claim},
		{Task: build, Kind: Retry, End: flight.End{}},
	} {
		s.Ask(q)
	}
	return s
}

// The answers that tasks still need come back in order, and what has no answer is asked again.
func TestEvaluated(t *testing.T) {
	t.Parallel()
	answer := &historyv1.EvaluateResponse{Answers: []*historyv1.ConditionAnswer{{Task: "test", Value: true}}}
	for name, test := range map[string]struct {
		events []dag.Event
		res    *historyv1.EvaluateResponse
		err    error
		want   string
	}{
		"all fail":            {err: errors.New("too large"), want: ":the condition could not be evaluated: too large lock:the condition could not be evaluated: too large retry:the condition could not be evaluated: too large again [] retries false"},
		"one is answered":     {res: answer, want: ": again [lock retry] retries true"},
		"the run is over":     {res: &historyv1.EvaluateResponse{}, events: []dag.Event{dag.Cancel{}}, want: "again [retry] retries true"},
		"a task has ended":    {err: errors.New("x"), events: []dag.Event{dag.CancelTask{Task: 0}}, want: ":the condition could not be evaluated: x retry:the condition could not be evaluated: x again [] retries false"},
		"nothing was reached": {res: &historyv1.EvaluateResponse{}, want: "again [ lock retry] retries true"},
	} {
		s := asked(t)
		questions := s.TakeQuestions()
		s.happen(test.events...)
		answers, rest := s.Evaluated(questions, test.res, test.err)
		var words []string
		for _, a := range answers {
			words = append(words, string(a.Question.Kind)+":"+a.Answer.GetError())
		}
		s.AskAgain(rest)
		var kinds []string
		for _, q := range s.TakeQuestions() {
			kinds = append(kinds, string(q.Kind))
		}
		words = append(words, fmt.Sprintf("again %v retries %v", kinds, s.HasOpenRetries()))
		if got := strings.Join(words, " "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A question sends its expression with what the expression sees.
func TestEvaluateRequest(t *testing.T) {
	t.Parallel()
	s := begin(t, &historyv1.RunInput{
		Input: object(3),
		Definition: &v1.Definition{Context: object(3), Tasks: map[string]*v1.TaskDefinition{
			"build": {Type: v1.TypeShell},
			"each": {
				Type: v1.TypeShell, DependsOn: []string{"build"}, Condition: "c", Foreach: structpb.NewStringValue("f"), Cache: &v1.Cache{Key: "k"},
				Retry: &v1.RetryPolicy{When: "w"}, Mutex: "${{ m }}", Input: object(3),
			},
			"many": {Type: v1.TypeShell, Parallel: structpb.NewStringValue("p")},
		}},
		References: map[string]*historyv1.ConditionReferences{"each": {Tasks: []string{"build"}, Cache: []string{"build"}}},
	})
	s.end("build", v1.TaskCompleted, object(3))
	each, _ := s.core.Index("each")
	many, _ := s.core.Index("many")
	s.happen(dag.Evaluated{Task: each, Value: true})
	s.happen(dag.Expanded{Task: each, Count: 2})
	s.records.At(each).Items = &historyv1.Items{Key: "items"}
	instance, _ := s.core.Index("each[1]")
	for _, q := range []Question{
		{Task: each, Kind: Condition}, {Task: each, Kind: Items}, {Task: many, Kind: Count}, {Task: instance, Kind: Cache}, {Task: instance, Kind: Lock},
		{Task: instance, Kind: Retry, End: flight.End{Attempt: 2, Ended: dag.Ended{State: v1.TaskFailed}, Response: &historyv1.ExecuteResponse{}}},
	} {
		s.Ask(q)
	}
	req, call := s.Draft().EvaluateRequest()
	if call != nil || len(req.GetParents()) != 1 || req.GetParents()["build"].GetState() != v1.TaskCompleted || req.GetWorkflow().GetRunId() != "run" {
		t.Errorf("call %+v, request %v", call, req)
	}
	var got []string
	for _, c := range req.GetConditions() {
		text := fmt.Sprintf("%s %s %s", c.GetTask(), c.GetKind(), c.GetExpression())
		if in := c.GetInput().GetFields(); in != nil {
			text += fmt.Sprintf(" %v of %v, %d fields, %s", in["index"].GetNumberValue(), in["count"].GetNumberValue(), len(in), c.GetItems())
		}
		if a := c.GetAttempt(); a != nil {
			text += fmt.Sprintf(" %d %s", a.GetNumber(), a.GetState())
		}
		got = append(got, text)
	}
	want := "each  c, each items f, many count p, each[1] cache k 1 of 2, 3 fields, items, each[1] lock ${{ m }} 1 of 2, 3 fields, items, each[1] retry w 2 failed"
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("conditions %s, want %s", got, want)
	}
}
