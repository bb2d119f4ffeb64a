package condition

// Check says whether an expression can be the condition of a task, and which
// ancestors it reads, sorted; one that picks a parent by a value, as in
// parent[workflow.context.x], reads all of them. An expression that is empty or
// blank is true and reads nothing. The error is an *Error or nil.
//
// Check is safe for concurrent use and takes about half a millisecond.
func Check(expr string, scope Scope) (references []string, err error) {
	if isBlank(expr) {
		return nil, nil
	}
	l, err := theLanguage()
	if err != nil {
		return nil, err
	}
	s, ast, found, problem := l.parse(expr)
	if problem != nil {
		// What CEL cannot read may be the name of a task.
		if better := scope.findUnspellable(expr); better != nil {
			return nil, better
		}
		return nil, problem
	}
	if problem := scope.findUnspellable(expr); problem != nil {
		return nil, problem
	}
	references, problem = scope.resolve(expr, found)
	if problem != nil {
		return nil, problem
	}
	e, problem := l.check(s, ast, found)
	if problem != nil {
		return nil, scope.hint(problem)
	}
	if _, err := l.plan(e); err != nil {
		return nil, errorAt(expr, 0, "", "%v", err)
	}
	return references, nil
}
