package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"switchyard/workflows/nearest"
)

// Scope describes what an expression of a task may see.
type Scope struct {
	// Kind is the kind of the expression; the zero value is Condition.
	Kind Kind
	// Task is the task that the expression belongs to.
	Task string
	// Ancestors holds the sorted ancestors of the task: its direct and indirect dependencies.
	Ancestors []string
	// Ended holds the sorted tasks outside of `finally`, for a task in `finally`.
	Ended []string
	// Tasks holds all tasks of the workflow, in any order.
	Tasks []string
	// FanOut holds the tasks of the workflow that fan out, sorted.
	FanOut []string
	// Artifacts holds the names of the artifacts that each task leaves; nil means that any name is allowed.
	Artifacts map[string][]string
	// Inputs holds the inputs that the workflow declares; nil means that any input is allowed.
	Inputs []string
}

// resolve checks that every task that is read is an ancestor, and returns the tasks that are read, sorted and without
// duplicates.
func (s Scope) resolve(expr string, found []reading) (names []string, problem *Error) {
	for _, r := range found {
		visible := s.Ancestors
		if r.variable == tasksVariable {
			visible = s.Ended
		}
		_, isAncestor := slices.BinarySearch(visible, r.task)
		switch {
		case r.isInput:
			problem = addMore(problem, s.input(expr, r))
		case r.task == "":
			names = append(names, visible...)
		case isAncestor:
			problem = addMore(problem, s.field(expr, r))
			names = append(names, r.task)
		case r.short && !slices.Contains(s.Tasks, r.task):
			hint := cmp.Or(s.Kind.nameHint(r.task), nearest.DidYouMean(r.task, slices.Concat(s.Kind.variables(), s.Ancestors)),
				s.Kind.noun()+" sees "+s.Kind.visible()+", and x.key is short for "+parentVariable+".x.output.key")
			problem = addMore(problem, errorAt(expr, r.offset, hint, "undeclared reference to '%s'", r.task))
		case r.variable == tasksVariable:
			hint := nearest.DidYouMean(r.task, s.Ended)
			if slices.Contains(s.Tasks, r.task) {
				hint = "it belongs to finally: write " + s.spell(r.task) + ", and add it to dependsOn"
			}
			problem = addMore(problem, errorAt(expr, r.offset, hint, "there is no task '%s' outside of finally", r.task))
		case slices.Contains(s.Ended, r.task):
			hint := "write " + s.spell(r.task)
			if r.short {
				hint += ".output"
			}
			if r.short && r.field != "" {
				hint += "." + r.field
			}
			problem = addMore(problem, errorAt(expr, r.offset, hint, "'%s' is not in finally", r.task))
		case r.task == s.Task:
			problem = addMore(problem, errorAt(expr, r.offset, s.choice(), "%s cannot read itself: %s is evaluated before its task starts", s.Task, s.Kind.noun()))
		case slices.Contains(s.Tasks, r.task):
			problem = addMore(problem, errorAt(expr, r.offset, "add "+r.task+" to its dependsOn", "%s; '%s' is not an ancestor", s.depends(), r.task))
		default:
			hint := s.choice()
			if near := nearest.Word(r.task, slices.Concat(s.Ancestors, s.Tasks)); near != "" {
				hint = fmt.Sprintf("did you mean %s?", s.spell(near))
			}
			problem = addMore(problem, errorAt(expr, r.offset, hint, "there is no task '%s'", r.task))
		}
	}
	if problem != nil {
		return nil, problem
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// maxNamed is the most ancestors that a message lists.
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

// improveAll applies improve to an error and the other errors of the same expression.
func (s Scope) improveAll(expr string, problem *Error) *Error {
	if s.Kind.base() == CacheKey && isBareText(expr) {
		problem.More = nil // the whole expression is one text without its quotes
	}
	var improved *Error
	for _, one := range problem.each() {
		improved = addMore(improved, s.improve(expr, one))
	}
	return improved
}

// improve returns a better error if the error is about the name of a task.
func (s Scope) improve(expr string, problem *Error) *Error {
	name, ok := undeclared(problem.Message)
	if s.Kind.base() == CacheKey && isBareText(expr) && (ok && wordHints[name] == "" && !strings.HasPrefix(problem.Hint, "did you mean") || strings.Contains(problem.Message, "Syntax error")) {
		problem.Hint = "a cache key is an expression: text in it needs its own quotes, in YAML key: \"'" + expr + "'\""
		return problem
	}
	if !ok && !strings.Contains(problem.Message, noSelection) || !s.Kind.sees(parentVariable) {
		return problem
	}
	if better := s.findMisread(expr); better != nil {
		return better
	}
	if !slices.Contains(s.Tasks, name) {
		return problem
	}
	problem.Hint = "did you mean " + s.spell(name) + "?"
	if _, isAncestor := slices.BinarySearch(s.Ancestors, name); isAncestor && s.Kind.shortens() {
		problem.Hint = "its whole output is " + spell(parentVariable, name) + ".output"
	}
	return problem
}

// isBareText reports whether an expression looks like a text without quotes, such as deps-v1.
func isBareText(expr string) bool {
	return !strings.ContainsFunc(expr, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@+", r)
	})
}

// findMisread looks for a shorthand whose task name CEL reads as something else: list-files.items is a subtraction to CEL, and
// the list in list.items a type.
func (s Scope) findMisread(expr string) *Error {
	if !s.Kind.shortens() {
		return nil
	}
	for i, tokens := 0, tokenize(expr); i < len(tokens); i++ {
		if tokens[i].kind != tokenName || isMember(tokens, i) {
			continue
		}
		start := tokens[i].start
		name := expr[start : start+nameSize(expr[start:])]
		if _, isAncestor := slices.BinarySearch(s.Ancestors, name); isAncestor && (!isIdentifier(name) || isTypeName(name)) {
			return errorAt(expr, start, "write "+spell(parentVariable, name)+".output"+fieldAfter(tokens, i, start+len(name)), "CEL does not read %s as a task", name)
		}
	}
	return nil
}

// fieldAfter returns the selection of a field at an offset behind token i, such as ".items", or "".
func fieldAfter(tokens []token, i, offset int) string {
	for i < len(tokens) && tokens[i].start < offset {
		i++
	}
	if field := after(tokens, i); field < len(tokens) && tokens[i].is(".") && tokens[field].kind == tokenName && !isCalled(tokens, field) {
		return "." + tokens[field].text
	}
	return ""
}

// findUnspellable looks for a task name that CEL reads as something else after a dot: parent.notify-failure is a subtraction to
// CEL.
func (s Scope) findUnspellable(expr string) *Error {
	tokens := tokenize(expr)
	for i, t := range tokens {
		point := after(tokens, i)
		if !s.Kind.readsTasks(t.text) || isMember(tokens, i) || point >= len(tokens) || !tokens[point].is(".") {
			continue
		}
		start := tokens[point].start + 1
		// `parent.a-b` may mean the task a-b, and `parent.a-b.c` can mean no other. The longest name that is a task takes
		// precedence.
		for name := expr[start : start+nameSize(expr[start:])]; name != ""; name = name[:max(strings.LastIndexByte(name, '-'), 0)] {
			if !isIdentifier(name) && slices.Contains(s.Tasks, name) {
				return errorAt(expr, start, "write "+spell(t.text, name), "CEL does not read %s.%s as a task", t.text, name)
			}
		}
	}
	return nil
}

// nameSize returns the length of the task name at the start of text.
func nameSize(text string) int {
	n := strings.IndexFunc(text, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if n < 0 {
		return len(text)
	}
	return n
}

// isIdentifier reports whether CEL accepts a task's name after a dot.
func isIdentifier(name string) bool {
	switch name {
	case "", "in", "true", "false", "null":
		return false
	}
	return !strings.Contains(name, "-") && (name[0] < '0' || name[0] > '9')
}

// spell returns the expression for a task of the workflow.
func (s Scope) spell(task string) string {
	if slices.Contains(s.Ended, task) {
		return spell(tasksVariable, task)
	}
	return spell(parentVariable, task)
}

// spell returns the expression for a task that a variable holds.
func spell(variable, task string) string {
	if isIdentifier(task) {
		return variable + "." + task
	}
	return variable + "['" + task + "']"
}
