package dag

import (
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// A condition that could not be asked is no false one: its task fails, and the
// run with it.
func TestBrokenConditionFailsTheTask(t *testing.T) {
	g, err := NewGraph(&v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"a": {Condition: "true"},
		"b": {DependsOn: []string{"a"}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := New(g)
	s.Start()
	d := s.Apply(Evaluated{Task: 0, Err: "the store is gone", Broken: true})
	if got := s.Task(0); got.State != v1.TaskFailed || got.Reason != v1.ReasonSystem || got.Error != "the store is gone" {
		t.Errorf("task a is %s (%s): %s", got.State, got.Reason, got.Error)
	}
	if got := s.Task(1); got.State != v1.TaskSkipped || got.Reason != v1.ReasonUpstream {
		t.Errorf("task b is %s (%s)", got.State, got.Reason)
	}
	if d.End == nil || d.End.State != v1.TaskFailed || d.End.Task != 0 {
		t.Errorf("the run ends as %+v, want failed because of a", d.End)
	}
}
