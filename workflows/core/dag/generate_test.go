package dag_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// chance returns true in n of 100 cases.
func chance(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(1, 100).Draw(t, label) > 100-n
}

// drawDefinition returns a random DAG of at most 10 tasks, none of which fans out. The names are unrelated to the order of the
// tasks.
func drawDefinition(t *rapid.T, policies ...string) *v1.Definition {
	n := rapid.IntRange(1, 10).Draw(t, "tasks")
	density := rapid.IntRange(5, 70).Draw(t, "density")
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%c%d", 'a'+(i*7)%10, i)
	}
	def := &v1.Definition{
		FailurePolicy: rapid.SampledFrom(policies).Draw(t, "policy"),
		Tasks:         make(map[string]*v1.TaskDefinition, n),
	}
	for i, name := range names {
		task := &v1.TaskDefinition{ContinueOnError: chance(t, 15, "continueOnError")}
		for _, parent := range names[:i] {
			if chance(t, density, "edge") {
				task.DependsOn = append(task.DependsOn, parent)
			}
		}
		if chance(t, 30, "condition") {
			task.Condition = "oracle"
			for _, other := range names[:i] { // an ancestor or not
				if chance(t, 50, "mentioned") {
					task.Condition += " " + other
				}
			}
		}
		switch {
		case chance(t, 20, "onFailure"):
			task.OnFailure = "run"
		case len(task.DependsOn) > 0 && chance(t, 30, "has when"):
			task.When = rapid.SampledFrom(triggers).Draw(t, "when")
		}
		if retries := rapid.Int32Range(-1, 3).Draw(t, "retries"); retries >= 0 {
			task.Retry = &v1.RetryPolicy{MaxRetries: &retries}
			if chance(t, 10, "notRetryable") {
				task.Retry.Retryable = new(bool)
			}
		}
		def.Tasks[name] = task
	}
	return def
}

var triggers = []string{"all_success", "all_done", "all_failed", "one_success", "one_failed", "none_failed", "always"}

// drawFanOut makes some tasks of a definition fan out.
func drawFanOut(t *rapid.T, def *v1.Definition) {
	for _, name := range slices.Sorted(maps.Keys(def.Tasks)) {
		if chance(t, 35, "fans out") {
			def.Tasks[name].Parallel = structpb.NewStringValue("oracle")
			def.Tasks[name].MaxFailures = rapid.Int32Range(0, 2).Draw(t, "maxFailures")
		}
	}
}

// fanOut returns the expansion of a task. It is always the same for the same task.
func fanOut(seed uint64, task string) dag.Expanded {
	h := fnv.New64a()
	fmt.Fprint(h, "fan-out", seed, task)
	switch v := h.Sum64() % 20; v {
	case 0:
		return dag.Expanded{Err: "no list"}
	case 1:
		return dag.Expanded{Err: "the store is gone", Broken: true}
	case 2:
		return dag.Expanded{}
	case 3, 4:
		return dag.Expanded{Count: 5, Partitioned: true}
	case 5:
		return dag.Expanded{From: 7, Count: 2}
	default:
		return dag.Expanded{Count: 1 + int(v%5)}
	}
}

// taskOf returns the task that has this name or has an instance of this name.
func taskOf(name string) string {
	task, _, _ := strings.Cut(name, "[")
	return task
}

// drawEnd returns a random end of an attempt.
func drawEnd(t *rapid.T) dag.Ended {
	words := []string{
		"completed", "completed", "completed", "completed", "completed", "completed", "stopped",
		"failed", "failed", "failed", "killed_oom", "lost", "killed", "rejected", "cancelled", "moved", "moved",
	}
	word := rapid.SampledFrom(words).Draw(t, "end")
	e := dag.Ended{State: word, NoRetry: chance(t, 5, "noRetry")}
	if word != "completed" {
		e.Reason = "because-" + word
		e.ExitCode = rapid.Int32Range(-1, 2).Draw(t, "exitCode")
	}
	return e
}

// oracle returns the answer to the condition of a task. It is always the same for the same ends of its ancestors, which are
// sorted by name.
func oracle(seed uint64, task string, ancestors []string, state func(string) string) dag.Evaluated {
	h := fnv.New64a()
	fmt.Fprint(h, seed, task)
	for _, a := range ancestors {
		fmt.Fprint(h, a, state(a))
	}
	switch v := h.Sum64() % 20; v {
	case 0, 1:
		return dag.Evaluated{Err: "no such key"}
	case 2:
		return dag.Evaluated{Err: "the store is gone", Broken: true}
	default:
		return dag.Evaluated{Value: v < 14}
	}
}

// mentions returns the references of the conditions in a definition: the words in each condition.
func mentions(def *v1.Definition) map[string]*historyv1.ConditionReferences {
	references := make(map[string]*historyv1.ConditionReferences)
	for name, task := range def.Tasks {
		references[name] = &historyv1.ConditionReferences{Tasks: strings.Fields(task.Condition)}
	}
	return references
}

// hasBrokenGuard reports whether a parent that the task's condition does not mention counts as a failure.
func hasBrokenGuard(def *v1.TaskDefinition, countsAs func(parent string) string) bool {
	return def.Condition != "" && def.When == "" && def.OnFailure != "run" &&
		slices.ContainsFunc(def.DependsOn, func(parent string) bool {
			return !wordIn(parent, def.Condition) && countsAs(parent) == "failure"
		})
}

// ancestors returns every task above a task, sorted.
func ancestors(def *v1.Definition, name string) []string {
	var all []string
	for _, parent := range def.Tasks[taskOf(name)].DependsOn {
		all = append(append(all, parent), ancestors(def, parent)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// wordIn reports whether a word is in a space-separated list.
func wordIn(word, list string) bool { return slices.Contains(strings.Fields(list), word) }
