package condition

import "slices"

// Check reports whether an expression is one of its scope's kind, and which
// ancestors it reads, sorted; one that picks a parent by a value, as in
// parent[workflow.context.x], reads all of them. A condition, and what a retry
// depends on, that is empty or blank is true and reads nothing. The error is an
// *Error or nil.
//
// Check is safe for concurrent use and takes about half a millisecond, and microseconds
// where there is only a selection such as parent.build.output.version.
func Check(expr string, scope Scope) (references []string, err error) {
	if isBlank(expr) {
		return nil, scope.Kind.blank(expr)
	}
	if references, ok := scope.plain(expr); ok {
		return references, nil
	}
	return scope.check(expr)
}

// check has CEL check an expression.
func (s Scope) check(expr string) (references []string, err error) {
	l, err := theLanguage()
	if err != nil {
		return nil, err
	}
	src, ast, found, problem := l.parse(expr, s.Kind)
	if problem != nil {
		// What CEL cannot read may be the name of a task.
		if better := s.findUnspellable(expr); better != nil {
			return nil, better
		}
		return nil, s.improve(expr, problem)
	}
	if problem := s.findUnspellable(expr); problem != nil {
		return nil, problem
	}
	references, problem = s.resolve(expr, found)
	e, other := l.check(src, ast, found, s.Kind)
	others := other.each()
	if problem != nil {
		// Of an expression that reads what it must not, only its other names are known to be wrong in themselves.
		others = slices.DeleteFunc(others, func(e *Error) bool { return !isAboutName(e.Message) })
	}
	if problem = addMore(problem, others...); problem != nil {
		return nil, s.improveAll(expr, problem)
	}
	if _, err := l.plan(e); err != nil {
		return nil, errorAt(expr, 0, "", "%v", err)
	}
	return references, nil
}
