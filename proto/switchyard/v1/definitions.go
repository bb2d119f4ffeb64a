package switchyardv1

import (
	"iter"
	"maps"
	"slices"
)

// TaskNamed returns the task of a definition with a name, which may belong to `finally`, or nil if the definition has none.
func TaskNamed(def *Definition, name string) *TaskDefinition {
	if task := def.GetTasks()[name]; task != nil {
		return task
	}
	return def.GetFinally()[name]
}

// AllTasks yields the tasks of a definition, with those of `finally`, by name and in no order.
func AllTasks(def *Definition) iter.Seq2[string, *TaskDefinition] {
	return func(yield func(string, *TaskDefinition) bool) {
		for _, tasks := range []map[string]*TaskDefinition{def.GetTasks(), def.GetFinally()} {
			for name, task := range tasks {
				if !yield(name, task) {
					return
				}
			}
		}
	}
}

// TaskNames returns the names of all tasks of a definition, with those of `finally`, sorted and without duplicates.
func TaskNames(def *Definition) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(def.GetTasks())), maps.Keys(def.GetFinally()))
	slices.Sort(names)
	return slices.Compact(names)
}

// CountTasks returns the number of tasks of a definition, with those of `finally`.
func CountTasks(def *Definition) int { return len(def.GetTasks()) + len(def.GetFinally()) }

// IsInFinally reports whether the task of a definition with a name belongs to `finally`.
func IsInFinally(def *Definition, name string) bool {
	return def.GetTasks()[name] == nil && def.GetFinally()[name] != nil
}
