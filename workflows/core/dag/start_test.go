package dag_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// addParent adds a task to a definition that ends as word describes.
func addParent(def *v1.Definition, sc *script, name, word string) {
	task := &v1.TaskDefinition{Retry: once()}
	def.Tasks[name] = task
	switch word {
	case "condition false":
		task.Condition = "x"
		sc.conditions[name] = "false"
	case "condition error":
		task.Condition = "x"
		sc.conditions[name] = "no such key"
	case "skipped upstream":
		task.DependsOn = []string{name + "-culprit"}
		addParent(def, sc, name+"-culprit", "failed")
	case "skipped neutral":
		task.DependsOn = []string{name + "-culprit"}
		addParent(def, sc, name+"-culprit", "condition false")
	case "dead_letter":
		one := int32(1)
		task.Retry = &v1.RetryPolicy{MaxRetries: &one}
		sc.attempts[name] = repeat(2, ended("failed"))
	case "excused failed", "excused killed", "excused cancelled":
		task.ContinueOnError = true
		sc.attempts[name] = repeat(1, ended(strings.TrimPrefix(word, "excused ")))
	case "excused condition error":
		addParent(def, sc, name, "condition error")
		def.Tasks[name].ContinueOnError = true
	case "excused upstream":
		addParent(def, sc, name, "skipped upstream")
		def.Tasks[name].ContinueOnError = true
	default:
		sc.attempts[name] = repeat(1, ended(word))
	}
}

func TestWhenATaskStarts(t *testing.T) {
	const (
		runs      = "completed/"
		upstream  = "skipped/upstream"
		condition = "skipped/condition"
		broken    = "failed/condition_error"
	)
	tests := []struct {
		parents   string // comma separated, as in addParent; the condition mentions those in brackets
		condition string // "", "true", "false", "error"
		onFailure string
		want      string // state/reason of the child
	}{
		// No condition: no parent a failure and at least one a success.
		{"", "", "", runs},
		{"completed", "", "", runs},
		{"completed", "", "skip", runs},
		{"stopped", "", "", runs},
		{"completed,completed,stopped", "", "", runs},
		{"completed,condition false", "", "", runs},
		{"completed,condition error", "", "", upstream},
		{"completed,skipped neutral", "", "", runs},
		{"condition false", "", "", upstream},
		{"condition error", "", "", upstream},
		{"condition false,condition false", "", "", upstream},
		{"skipped neutral", "", "", upstream},
		{"failed", "", "", upstream},
		{"killed_oom", "", "", upstream},
		{"lost", "", "", upstream},
		{"killed", "", "", upstream},
		{"dead_letter", "", "", upstream},
		{"rejected", "", "", upstream},
		{"cancelled", "", "", upstream},
		{"skipped upstream", "", "", upstream},
		{"completed,failed", "", "", upstream},
		{"completed,cancelled", "", "", upstream},
		{"completed,skipped upstream", "", "", upstream},
		{"completed,completed,completed,dead_letter", "", "", upstream},

		// continueOnError of a parent.
		{"excused failed", "", "", runs},
		{"excused killed", "", "", runs},
		{"excused cancelled", "", "", runs},
		{"excused failed,failed", "", "", upstream},
		{"excused upstream", "", "", upstream},
		{"excused condition error", "", "", runs},

		// With a condition: it must be true, and no parent that it does not mention may have failed.
		{"", "true", "", runs},
		{"", "false", "", condition},
		{"", "error", "", broken},
		{"completed", "true", "", runs},
		{"completed", "false", "", condition},
		{"completed", "error", "", broken},
		{"(failed)", "true", "", runs},
		{"(failed)", "false", "", condition},
		{"(failed)", "error", "", broken},
		{"(cancelled)", "true", "", runs},
		{"(skipped upstream)", "true", "", runs},
		{"condition false", "true", "", runs},
		{"skipped neutral", "true", "", runs},
		{"(condition false),(skipped upstream),(dead_letter)", "true", "", runs},
		{"failed", "true", "", upstream},
		{"failed", "false", "", upstream},
		{"failed", "error", "", upstream},
		{"killed_oom", "true", "", upstream},
		{"cancelled", "true", "", upstream},
		{"dead_letter", "true", "", upstream},
		{"skipped upstream", "true", "", upstream},
		{"completed,failed", "true", "", upstream},
		{"(failed),failed", "true", "", upstream},
		{"(failed),completed", "true", "", runs},
		{"(failed),condition false", "true", "", runs},
		{"(completed),skipped upstream", "true", "", upstream},
		{"excused failed", "true", "", runs},

		// onFailure: run, always.
		{"", "", "run", runs},
		{"completed", "", "run", runs},
		{"failed", "", "run", runs},
		{"killed", "", "run", runs},
		{"cancelled", "", "run", runs},
		{"rejected,lost", "", "run", runs},
		{"skipped upstream", "", "run", runs},
		{"condition false", "", "run", runs},
		{"condition false,skipped neutral", "", "run", runs},

		// With both, the condition decides.
		{"failed", "true", "run", runs},
		{"failed", "false", "run", condition},
		{"condition false", "error", "run", broken},
		{"condition error", "", "run", runs},
		{"(condition error)", "true", "", runs},
		{"condition error", "true", "", upstream},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s;%s;%s", tt.parents, tt.condition, tt.onFailure), func(t *testing.T) {
			child := &v1.TaskDefinition{OnFailure: tt.onFailure}
			def := &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"child": child}}
			sc := script{conditions: map[string]string{}, attempts: map[string][]dag.Ended{}}
			if tt.condition != "" {
				child.Condition = "x" // and the parents that it mentions
				sc.conditions["child"] = tt.condition
			}
			if tt.parents != "" {
				for i, word := range strings.Split(tt.parents, ",") {
					name := fmt.Sprintf("p%d", i)
					if mentioned := strings.Trim(word, "()"); mentioned != word {
						word, child.Condition = mentioned, child.Condition+" "+name
					}
					addParent(def, &sc, name, word)
					child.DependsOn = append(child.DependsOn, name)
				}
			}
			s, _ := play(t, def, sc)
			rec := record(t, s, "child")
			if got := rec.State + "/" + rec.Reason; got != tt.want {
				t.Errorf("child is %s (%s), want %s", got, rec.Error, tt.want)
			}
		})
	}
}

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
