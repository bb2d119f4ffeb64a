package definition

import (
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// neverTriggered warns about a when that does not hold however the parents of its task end.
func (w *taskWarnings) neverTriggered(def *v1.Definition, task *v1.TaskDefinition, at *source.Path) {
	p, parents := at.Field("when"), task.GetDependsOn()
	if task.GetWhen() == "" || len(parents) == 0 {
		return
	}
	if w.outcomes == nil {
		w.outcomes = &outcomes{def: def, skippable: map[string]bool{}}
	}
	canFail := func(parent string) bool {
		task := v1.TaskNamed(def, parent)
		_, fansOut := Fan(task)
		return !task.GetContinueOnError() || fansOut || w.outcomes.isSkippable(parent)
	}
	cannotFail := func(parent string) bool { return !canFail(parent) }
	reason, hint := "", ""
	switch task.GetWhen() {
	case "all_failed", "one_failed":
		i := slices.IndexFunc(parents, cannotFail)
		if i >= 0 && (task.GetWhen() == "all_failed" || !slices.ContainsFunc(parents, canFail)) {
			reason = "a failure of " + parents[i] + " does not count, because it has continueOnError"
			hint = "remove continueOnError, or replace when by condition: parent['" + parents[i] + "'].state != 'completed'"
		}
	case "all_success":
		isParent := map[string]bool{}
		for _, parent := range parents {
			isParent[parent] = true
		}
		for _, parent := range parents {
			if failed := neededFailures(v1.TaskNamed(def, parent), isParent); len(failed) > 0 {
				reason = parent + " starts only if " + strings.Join(failed, " or ") + " has failed"
				hint = "none_failed allows skipped tasks, and one_success needs one that has succeeded"
				break
			}
		}
	}
	if reason != "" {
		w.Warn(w.locate(p), p, "when: "+task.GetWhen()+" never holds: "+reason, hint)
	}
}

// neededFailures returns the parents of which one must fail before a task starts, if all of them are in the set, and otherwise nil.
func neededFailures(task *v1.TaskDefinition, among map[string]bool) []string {
	isAmong := func(name string) bool { return among[name] }
	above := task.GetDependsOn()
	switch task.GetWhen() {
	case "all_failed":
		if i := slices.IndexFunc(above, isAmong); i >= 0 {
			return above[i : i+1]
		}
	case "one_failed":
		if !slices.ContainsFunc(above, func(name string) bool { return !isAmong(name) }) {
			return above
		}
	}
	return nil
}
