package dag

import (
	"testing"

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
