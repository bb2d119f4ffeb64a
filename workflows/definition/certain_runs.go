package definition

import (
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// CertainRuns returns the stored workflows that every run of a checked definition starts if it completes, sorted. They belong to
// tasks of type run, also in inline definitions, that start without a decision: no condition, no approval and no expression
// comes before them.
func CertainRuns(def *v1.Definition) []string {
	found := map[string]bool{}
	certain := map[string]bool{}
	var isCertain func(name string) bool
	isCertain = func(name string) bool {
		is, known := certain[name]
		if !known {
			task := v1.TaskNamed(def, name)
			is = startsAlways(task) && !slices.ContainsFunc(task.GetDependsOn(), func(parent string) bool {
				return v1.TaskNamed(def, parent).GetType() == v1.TypeApproval || !isCertain(parent)
			})
			certain[name] = is
		}
		return is
	}
	for name, task := range v1.AllTasks(def) {
		if task.GetType() != v1.TypeRun || !isCertain(name) {
			continue
		}
		spec := task.GetSpec().GetFields()
		if workflow := spec["workflow"].GetStringValue(); workflow != "" && !condition.HasTemplate(workflow) {
			found[workflow] = true
		}
		if inline := spec["definition"].GetStructValue(); inline != nil {
			if inner, err := FromStruct(inline); err == nil {
				for _, workflow := range CertainRuns(inner) {
					found[workflow] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// startsAlways reports whether a task starts, with at least one instance, whenever the tasks that it depends on have completed.
func startsAlways(task *v1.TaskDefinition) bool {
	fan, fansOut := Fan(task)
	return task.GetCondition() == "" && task.GetWhen() != "one_failed" && task.GetWhen() != "all_failed" && (!fansOut || fan.Count > 0)
}
