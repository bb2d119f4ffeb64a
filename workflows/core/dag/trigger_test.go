package dag_test

import (
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// A task that a trigger skips is neutral: it fails neither its children nor the run.
func TestSkippedByTriggerIsNeutral(t *testing.T) {
	s, end := play(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"a":     {},
		"alarm": {DependsOn: []string{"a"}, When: "one_failed"},
		"after": {DependsOn: []string{"alarm"}},
		"both":  {DependsOn: []string{"a", "alarm"}},
	}}, script{})
	want := "when: one_failed does not hold: of its parents 1 succeeded, 0 failed and 0 were skipped"
	if rec := record(t, s, "alarm"); rec.Error != want {
		t.Errorf("alarm is %+v", rec)
	}
	if rec := record(t, s, "after"); rec.State != "skipped" || rec.Reason != "upstream" || rec.Error != "task \"alarm\" was skipped by its `when`" {
		t.Errorf("after is %+v", rec)
	}
	if rec := record(t, s, "both"); rec.State != "completed" {
		t.Errorf("both is %+v", rec)
	}
	if end.State != "completed" {
		t.Errorf("the run ended %+v", end)
	}
}
