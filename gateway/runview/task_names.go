package runview

import (
	"fmt"
	"slices"
	"strings"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/nearest"
)

// NoTask returns the error for a task that the run does not have. It suggests similar names.
func (v *View) NoTask(task string) error {
	return rpcerror.NotFound("run %s has no task %q; %s", v.Run.GetId(), task, suggestNames(task, v.Names))
}

// KnownTasks returns the wanted names that are tasks of the run, sorted and without duplicates, or all tasks if wanted
// is empty.
func (v *View) KnownTasks(wanted []string) []string {
	if len(wanted) == 0 {
		return v.Names
	}
	known := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return v.Tasks[name] == nil })
	slices.Sort(known)
	return slices.Compact(known)
}

// maxSuggested is the number of names that an error suggests.
const maxSuggested = 5

// suggestNames returns a text that suggests the known names that are most similar to name.
func suggestNames(name string, known []string) string {
	if near := nearest.Word(name, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	near := nearest.Rank(name, known)
	more := ""
	if len(near) > maxSuggested {
		near, more = near[:maxSuggested], ", ..."
	}
	slices.Sort(near)
	return "its tasks are " + strings.Join(near, ", ") + more
}
