package dag_test

import (
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

func TestSkipNamesTheTaskAtFault(t *testing.T) {
	def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"ok":       {},
		"culprit":  {Retry: once()},
		"between":  {DependsOn: []string{"culprit", "ok"}},
		"last":     {DependsOn: []string{"ok", "between"}},
		"not":      {Condition: "x"},
		"neither":  {DependsOn: []string{"not"}},
		"nor":      {DependsOn: []string{"neither"}},
		"dropped":  {},
		"after":    {DependsOn: []string{"dropped"}},
		"crashed":  {Retry: once()},
		"crashed2": {DependsOn: []string{"crashed"}},
		"guarded":  {DependsOn: []string{"between"}, Condition: "culprit"},
		"below":    {DependsOn: []string{"guarded"}},
	}}
	s, end := play(t, def, script{
		conditions: map[string]string{"not": "false"},
		attempts: map[string][]dag.Ended{
			"culprit": {ended("failed")}, "dropped": {ended("cancelled")}, "crashed": {ended("killed_oom")},
		},
	})
	for name, want := range map[string]string{
		"between":  `task "culprit" failed`,
		"last":     `task "culprit" failed`,
		"not":      `x is 1`,
		"neither":  `task "not" was skipped by its condition`,
		"nor":      `task "not" was skipped by its condition`,
		"after":    `task "dropped" was cancelled`,
		"crashed2": `task "crashed" ran out of memory`,
		"guarded":  `task "culprit" failed, and the condition of "guarded" does not mention "between"`,
		"below":    `task "culprit" failed, and the condition of "guarded" does not mention "between"`,
	} {
		if rec := record(t, s, name); rec.State != v1.TaskSkipped || rec.Error != want {
			t.Errorf("%s is %s: %s, want %s", name, rec.State, rec.Error, want)
		}
	}
	if end.State != v1.TaskFailed {
		t.Errorf("the run ended %s", end.State)
	}
}
