package runview

import (
	"fmt"
	"slices"
	"strings"
	"switchyard/gateway/rpcerror"
)

// NoTask returns the error for a task that the run does not have, which suggests names.
func (v *View) NoTask(task string) error {
	return rpcerror.NotFound("run %s has no task %q; %s", v.Run.GetId(), task, suggestNames(task, v.Names))
}

// KnownTasks returns those of the wanted names that are tasks of the run, sorted and once each, or all tasks if none is
// wanted.
func (v *View) KnownTasks(wanted []string) []string {
	if len(wanted) == 0 {
		return v.Names
	}
	known := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return v.Tasks[name] == nil })
	slices.Sort(known)
	return slices.Compact(known)
}

// maxSuggested is how many names an error suggests.
const maxSuggested = 5

// suggestNames returns a text that suggests the known names that are nearest to an unknown one.
func suggestNames(name string, known []string) string {
	near := slices.Clone(known)
	slices.SortStableFunc(near, func(a, b string) int { return distance(name, a) - distance(name, b) })
	if len(near) > 0 && distance(name, near[0]) <= max(2, len(name)/3) {
		return fmt.Sprintf("did you mean %s?", near[0])
	}
	more := ""
	if len(near) > maxSuggested {
		near, more = near[:maxSuggested], ", ..."
	}
	slices.Sort(near)
	return "its tasks are " + strings.Join(near, ", ") + more
}

// distance returns the number of letters to add, drop or change that turns a into b, without regard to case.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
