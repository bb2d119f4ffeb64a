package condition

import "slices"

// Check returns the sorted ancestors that an expression reads, or an error if the expression is not valid for the kind of its
// scope. An expression that selects a parent by a value, as in parent[workflow.context.x], reads all ancestors. An empty or
// blank expression of kind Condition or Retry is true and reads nothing. The error is an *Error or nil.
//
// Check is safe for concurrent use. It takes about half a millisecond.
func Check(expr string, scope Scope) (references []string, err error) {
	if isBlank(expr) {
		return nil, scope.Kind.blank(expr)
	}
	l, err := theLanguage()
	if err != nil {
		return nil, err
	}
	src, ast, found, problem := l.parse(expr, scope.Kind)
	// CEL may fail to read the name of a task, or read it as something else.
	if better := scope.findUnspellable(expr); better != nil {
		return nil, better
	}
	if problem != nil {
		return nil, scope.improve(expr, problem)
	}
	if problem := findInexact(expr); problem != nil {
		return nil, problem
	}
	references, problem = scope.resolve(expr, found)
	e, other := l.check(src, ast, found, scope.Kind)
	others := other.each()
	if problem != nil {
		// If an expression reads something that it must not, only errors about its other names are certain.
		others = slices.DeleteFunc(others, func(e *Error) bool { return !isAboutName(e.Message) })
	}
	if problem = addMore(problem, others...); problem != nil {
		return nil, scope.improveAll(expr, problem)
	}
	if _, err := l.plan(e); err != nil {
		return nil, errorAt(expr, 0, "", "%v", err)
	}
	return references, nil
}
