package dag

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// asked starts a run whose task "a" waits for the answer to its condition.
func asked(t *testing.T, def *v1.Definition) *State {
	t.Helper()
	def.Tasks["a"].Condition = "x"
	g, err := NewGraph(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := New(g)
	if d := s.Start(); len(d.Evaluate) != 1 || g.Name(d.Evaluate[0]) != "a" {
		t.Fatalf("asked for %v", d.Evaluate)
	}
	return s
}

func wantTask(t *testing.T, s *State, name, state, reason, text string) {
	t.Helper()
	i, ok := s.Index(name)
	if got := s.Task(i); !ok || got.State != state || got.Reason != reason || got.Error != text {
		t.Errorf("%s is %s (%s): %s, want %s (%s): %s", name, got.State, got.Reason, got.Error, state, reason, text)
	}
}

// A condition without a value is not a false one, whatever the cause. Its task fails without a retry, and so do the run and the
// tasks that depend on it.
func TestConditionWithoutAValueFailsTheTask(t *testing.T) {
	for reason, answer := range map[string]Evaluated{
		v1.ReasonSystem:         {Err: "the store is gone", Broken: true},
		v1.ReasonConditionError: {Err: "no such key: n"},
	} {
		t.Run(reason, func(t *testing.T) {
			s := asked(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
				"a":       {},
				"below":   {DependsOn: []string{"a"}},
				"notify":  {DependsOn: []string{"a"}, When: "one_failed"},
				"cleanup": {DependsOn: []string{"a"}, OnFailure: "run"},
			}})
			d := s.Apply(answer)
			wantTask(t, s, "a", v1.TaskFailed, reason, answer.Err)
			wantTask(t, s, "below", v1.TaskSkipped, v1.ReasonUpstream, `task "a" failed`)
			wantTask(t, s, "notify", v1.TaskQueued, "", "")
			wantTask(t, s, "cleanup", v1.TaskQueued, "", "")
			if len(d.Backoff) > 0 || len(d.Place) != 2 {
				t.Errorf("decisions %+v", d)
			}
			if a, _ := s.Index("a"); s.Task(a).Attempt != 0 || s.Task(a).ExitCode != -1 {
				t.Errorf("record %+v", s.Task(a))
			}
			if a, _ := s.Index("a"); s.FirstFailure() != a {
				t.Errorf("the first failure is task %d, want %d", s.FirstFailure(), a)
			}
		})
	}
}

func TestConditionErrorEndsTheRunAsFailed(t *testing.T) {
	s := asked(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}}})
	end := s.Apply(Evaluated{Err: "no such key: n"}).End
	if want := (End{State: v1.RunFailed, Reason: v1.ReasonTaskFailed, Error: `task "a" failed: no such key: n`, Final: v1.ReasonConditionError}); end == nil || *end != want {
		t.Errorf("the run ends as %+v, want %+v", end, want)
	}
}

func TestExcusedConditionErrorDoesNotCount(t *testing.T) {
	s := asked(t, &v1.Definition{FailurePolicy: "halt", Tasks: map[string]*v1.TaskDefinition{
		"a": {ContinueOnError: true}, "below": {DependsOn: []string{"a"}},
	}})
	s.Apply(Evaluated{Err: "no such key: n"})
	wantTask(t, s, "a", v1.TaskFailed, v1.ReasonConditionError, "no such key: n")
	wantTask(t, s, "below", v1.TaskQueued, "", "")
}

func TestConditionErrorHaltsTheRun(t *testing.T) {
	s := asked(t, &v1.Definition{FailurePolicy: "halt", Tasks: map[string]*v1.TaskDefinition{
		"a": {}, "b": {}, "c": {OnFailure: "run"},
	}})
	s.Apply(Evaluated{Err: "no such key: n"})
	wantTask(t, s, "b", v1.TaskSkipped, v1.ReasonHalt, `task "a" failed`)
	wantTask(t, s, "c", v1.TaskQueued, "", "")
}

// The condition of a task that keeps its earlier instances is evaluated again when one of them is requeued.
func TestConditionErrorEndsInstancesFromBefore(t *testing.T) {
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {Condition: "x", Parallel: structpb.NewNumberValue(2)}}}
	g, err := NewGraph(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := Restore(g, []Record{{}, {State: v1.TaskCompleted, Claim: 1}, {Claim: 1}}, WithExpansion(0, 0, 2, false))
	if d := s.Start(); len(d.Evaluate) != 1 {
		t.Fatalf("asked for %v", d.Evaluate)
	}
	d := s.Apply(Evaluated{Err: "no such key: n"})
	wantTask(t, s, "a", v1.TaskFailed, v1.ReasonConditionError, "no such key: n")
	wantTask(t, s, "a[0]", v1.TaskCompleted, "", "")
	wantTask(t, s, "a[1]", v1.TaskSkipped, v1.ReasonConditionError, "no such key: n")
	if d.End == nil || d.End.State != v1.RunFailed {
		t.Errorf("the run ends as %+v", d.End)
	}
}
