package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"switchyard/workflows/nearest"
)

// taskFields returns the fields of a task that does not fan out.
func taskFields() []string {
	return []string{"exitCode", "stdout", "stderr", "stdoutTruncated", "stderrTruncated", "state", "output", "result"}
}

// fanOutFields returns the fields that only a task that fans out has.
func fanOutFields() []string { return []string{"completed", "count", "failed", "outputs"} }

// groupFields returns all fields of a task that fans out.
func groupFields() []string { return append(fanOutFields(), "exitCode", "state", "reason", "error") }

// field checks a selection on an ancestor, limited to the rules that depend on whether the ancestor fans out. CEL checks
// everything else.
func (s Scope) field(expr string, r reading) *Error {
	_, group := slices.BinarySearch(s.FanOut, r.task)
	switch {
	case r.isArtifact && group:
		return s.groupArtifacts(expr, r.task, r.field, r.at)
	case r.isArtifact:
		return s.artifact(expr, r)
	case r.short && group:
		hint := ""
		if slices.Contains(groupFields(), r.field) {
			hint = "write " + spell(r.variable, r.task) + "." + r.field
		}
		return errorAt(expr, r.offset, hint, "%s fans out, so it has no output of its own, but %s", r.task, strings.Join(groupFields(), ", "))
	case r.short && slices.Contains(taskFields(), r.field):
		return errorAt(expr, r.at, s.full(r), "%s.%s is short for %s.output.%s", r.task, r.field, spell(r.variable, r.task), r.field)
	case r.short || r.field == "":
		return nil
	case group && !slices.Contains(groupFields(), r.field):
		hint := "it has " + strings.Join(groupFields(), ", ")
		switch r.field {
		case artifactsField:
			return s.groupArtifacts(expr, r.task, "NAME", r.at)
		case "output", "result":
			hint = fmt.Sprintf("%s.outputs[0] is the output of its first instance", spell(r.variable, r.task))
		}
		return errorAt(expr, r.at, hint, "%s fans out, so it has no %s", r.task, r.field)
	case !group && slices.Contains(fanOutFields(), r.field):
		hint := "a field of its output is " + spell(r.variable, r.task) + ".output." + r.field
		if r.field == "outputs" {
			hint = "did you mean output?"
		}
		return errorAt(expr, r.at, hint, "%s does not fan out: only a task with parallel or foreach has %s", r.task, r.field)
	}
	return nil
}

// groupArtifacts returns the error of an expression that reads the artifacts of a task that fans out.
func (s Scope) groupArtifacts(expr, task, name string, at int) *Error {
	hint := fmt.Sprintf("a task finds those of all instances by artifacts: {in: [{from: %s.%s}]}", task, name)
	return errorAt(expr, at, hint, "%s fans out, and expressions do not see the artifacts of instances", task)
}

// artifact checks that a task leaves the artifact that an expression reads.
func (s Scope) artifact(expr string, r reading) *Error {
	names := s.Artifacts[r.task]
	if s.Artifacts == nil || slices.Contains(names, r.field) {
		return nil
	}
	hint := nearest.DidYouMean(r.field, names)
	switch {
	case len(names) == 0:
		hint = "add artifacts: {out: [{name: " + r.field + ", path: ...}]} to " + r.task
	case hint == "":
		hint = "it leaves: " + strings.Join(names, ", ")
	}
	return errorAt(expr, r.at, hint, "task %s leaves no artifact %s", r.task, r.field)
}

// full returns a hint for what a shorthand may have been meant for.
func (s Scope) full(r reading) string {
	if r.field == "output" {
		return "leave out `output`, or write " + spell(r.variable, r.task) + ".output"
	}
	return fmt.Sprintf("for its own %s write %s.%s", r.field, spell(r.variable, r.task), r.field)
}

// input checks that the workflow declares the input that an expression reads.
func (s Scope) input(expr string, r reading) *Error {
	if s.Inputs == nil || slices.Contains(s.Inputs, r.field) {
		return nil
	}
	hint := cmp.Or(nearest.DidYouMean(r.field, s.Inputs), "add it to inputs")
	return errorAt(expr, r.offset, hint, "the workflow declares no input '%s'", r.field)
}
