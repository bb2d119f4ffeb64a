package dag_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// family plays a run of a task "it" whose parents end in the given ways: "s" completes, "n" is skipped by its condition and "f"
// fails.
func family(t *testing.T, policy string, it *v1.TaskDefinition, parents ...string) (dag.Record, *dag.End) {
	t.Helper()
	def := &v1.Definition{FailurePolicy: policy, Tasks: map[string]*v1.TaskDefinition{"it": it}}
	sc := script{conditions: map[string]string{"it": "true"}, attempts: map[string][]dag.Ended{}}
	for k, how := range parents {
		name := fmt.Sprintf("parent%d", k)
		it.DependsOn = append(it.DependsOn, name)
		def.Tasks[name] = &v1.TaskDefinition{Retry: once()}
		switch how {
		case "n":
			def.Tasks[name].Condition = "x"
			sc.conditions[name] = "false"
		case "f":
			sc.attempts[name] = []dag.Ended{ended("failed")}
		}
	}
	s, end := play(t, def, sc)
	return record(t, s, "it"), end
}

// TestTriggers covers every trigger over every pair of parents, and over one parent of each kind.
func TestTriggers(t *testing.T) {
	starts := map[string][]string{ // parents that let it start
		"all_success": {"ss"},
		"all_done":    {"ss", "sn", "sf", "nn", "nf", "ff", "snf"},
		"all_failed":  {"ff"},
		"one_success": {"ss", "sn", "sf", "snf"},
		"one_failed":  {"sf", "nf", "ff", "snf"},
		"none_failed": {"ss", "sn", "nn"},
		"always":      {"ss", "sn", "sf", "nn", "nf", "ff", "snf"},
		"":            {"ss", "sn"},
	}
	for when, lets := range starts {
		for _, parents := range []string{"ss", "sn", "sf", "nn", "nf", "ff", "snf"} {
			t.Run(when+"/"+parents, func(t *testing.T) {
				var ends []string
				for _, p := range parents {
					ends = append(ends, string(p))
				}
				rec, _ := family(t, "continue", &v1.TaskDefinition{When: when}, ends...)
				state, reason := "skipped", "when"
				if when == "" {
					reason = "upstream"
				}
				if slices.Contains(lets, parents) {
					state, reason = "completed", ""
				}
				if rec.State != state || rec.Reason != reason {
					t.Errorf("%+v, want %s (%s)", rec, state, reason)
				}
			})
		}
	}
}

// Both the trigger and the condition must hold. The condition is not evaluated if the trigger does not hold.
func TestTriggerAndCondition(t *testing.T) {
	for _, tt := range []struct{ when, mentions, condition, parent, want string }{
		{"one_failed", "x", "true", "f", "completed/"},
		{"one_failed", "x", "false", "f", "skipped/condition"},
		{"one_failed", "x", "true", "s", "skipped/when"},
		{"one_failed", "x", "false", "s", "skipped/when"},
		{"all_done", "x", "true", "f", "completed/"},
		{"", "up", "true", "f", "completed/"},
		{"", "x", "true", "f", "skipped/upstream"},
	} {
		def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
			"up": {Retry: once()},
			"it": {DependsOn: []string{"up"}, When: tt.when, Condition: tt.mentions},
		}}
		sc := script{conditions: map[string]string{"it": tt.condition}, attempts: map[string][]dag.Ended{}}
		if tt.parent == "f" {
			sc.attempts["up"] = []dag.Ended{ended("failed")}
		}
		s, _ := play(t, def, sc)
		if rec := record(t, s, "it"); rec.State+"/"+rec.Reason != tt.want {
			t.Errorf("when %q, condition %s, parent %s: %+v, want %s", tt.when, tt.condition, tt.parent, rec, tt.want)
		}
	}
}

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

// Under halt, the triggers that expect failures let a task start.
func TestFailureTriggersStartTasksUnderHalt(t *testing.T) {
	for when, want := range map[string]string{
		"always": "completed/", "all_done": "completed/", "one_failed": "completed/", "all_failed": "completed/",
		"one_success": "skipped/halt", "none_failed": "skipped/halt", "all_success": "skipped/halt", "": "skipped/halt",
	} {
		rec, _ := family(t, "halt", &v1.TaskDefinition{When: when}, "f")
		if rec.State+"/"+rec.Reason != want {
			t.Errorf("when %q: %+v, want %s", when, rec, want)
		}
	}
}
