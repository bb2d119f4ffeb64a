package condition

import (
	"fmt"
	"slices"
	"strings"
)

// Scope says what the condition of a task may see.
type Scope struct {
	// Task that the condition belongs to.
	Task string
	// Ancestors of the task, sorted: the tasks that it depends on, and those that
	// they depend on.
	Ancestors []string
	// Tasks are all tasks of the workflow, in any order.
	Tasks []string
}

// resolve checks that every task that is read is an ancestor, and returns those
// that are read, sorted and each once.
func (s Scope) resolve(expr string, found []reading) ([]string, *Error) {
	var names []string
	for _, r := range found {
		switch {
		case r.task == "":
			names = append(names, s.Ancestors...)
		case slices.Contains(s.Ancestors, r.task):
			names = append(names, r.task)
		case r.task == s.Task:
			return nil, errorAt(expr, r.offset, s.choice(), "%s cannot read itself: a condition is evaluated before its task starts", s.Task)
		case slices.Contains(s.Tasks, r.task):
			return nil, errorAt(expr, r.offset, "add "+r.task+" to its dependsOn", "%s; '%s' is none of its ancestors", s.depends(), r.task)
		default:
			hint := s.choice()
			if near := nearest(r.task, slices.Concat(s.Ancestors, s.Tasks)); near != "" {
				hint = fmt.Sprintf("did you mean %s?", spell(near))
			}
			return nil, errorAt(expr, r.offset, hint, "there is no task '%s'", r.task)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// maxNamed is how many ancestors a message lists.
const maxNamed = 10

func (s Scope) listAncestors() string {
	if len(s.Ancestors) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(s.Ancestors[:maxNamed], ", "), len(s.Ancestors)-maxNamed)
	}
	return strings.Join(s.Ancestors, ", ")
}

func (s Scope) depends() string {
	if len(s.Ancestors) == 0 {
		return s.Task + " depends on nothing"
	}
	return s.Task + " depends on " + s.listAncestors()
}

func (s Scope) choice() string {
	if len(s.Ancestors) == 0 {
		return s.depends()
	}
	return "its ancestors are " + s.listAncestors()
}

// hint improves the hint of a complaint about a name that is a task's.
func (s Scope) hint(problem *Error) *Error {
	if name, ok := undeclared(problem.Message); ok && slices.Contains(s.Tasks, name) {
		problem.Hint = "did you mean " + spell(name) + "?"
	}
	return problem
}

// findUnspellable looks for a task whose name CEL reads as something else after
// a point: parent.notify-failure is a subtraction to CEL.
func (s Scope) findUnspellable(expr string) *Error {
	tokens := tokenize(expr)
	for i, t := range tokens {
		point := after(tokens, i)
		if t.text != parentVariable || isMember(tokens, i) || point >= len(tokens) || !tokens[point].is(".") {
			continue
		}
		start := tokens[point].start + 1
		// `parent.a-b` may mean the task a-b, and `parent.a-b.c` no other; the longest
		// name that is a task wins.
		for name := expr[start : start+nameSize(expr[start:])]; name != ""; name = name[:max(strings.LastIndexByte(name, '-'), 0)] {
			if !isIdentifier(name) && slices.Contains(s.Tasks, name) {
				return errorAt(expr, start, "write "+spell(name), "CEL does not read parent.%s as a task", name)
			}
		}
	}
	return nil
}

// nameSize is the length of the task name that text begins with.
func nameSize(text string) int {
	n := strings.IndexFunc(text, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if n < 0 {
		return len(text)
	}
	return n
}

// isIdentifier tells whether CEL accepts a task's name after a point.
func isIdentifier(name string) bool {
	switch name {
	case "", "in", "true", "false", "null":
		return false
	}
	return !strings.Contains(name, "-") && (name[0] < '0' || name[0] > '9')
}

// spell is how an expression names a task.
func spell(task string) string {
	if isIdentifier(task) {
		return parentVariable + "." + task
	}
	return parentVariable + "['" + task + "']"
}
