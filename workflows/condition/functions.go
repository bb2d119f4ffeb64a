package condition

import (
	"slices"
	"strings"
	"unicode"

	"github.com/google/cel-go/common/ast"

	"switchyard/workflows/nearest"
)

// nameFunctions fills in the names of the language's functions.
func (l *language) nameFunctions() {
	add := func(name string, isMethod bool) {
		if strings.ContainsFunc(name, func(r rune) bool { return r != '.' && r != '_' && !unicode.IsLetter(r) }) || strings.HasPrefix(name, "_") || name == "in" {
			return // an operator, or one of CEL's internal functions
		}
		if isMethod {
			l.methods = append(l.methods, name)
		} else {
			l.functions = append(l.functions, name)
		}
	}
	for name, function := range l.env.Functions() {
		for _, overload := range function.OverloadDecls() {
			add(name, overload.IsMemberFunction())
		}
	}
	for _, macro := range l.env.Macros() {
		switch name := macro.Function(); name {
		case "least", "greatest":
			add("math."+name, false)
		default:
			add(name, macro.IsReceiverStyle())
		}
	}
	for _, list := range []*[]string{&l.functions, &l.methods} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

// functionHint returns a hint that names a function to call in place of an unknown one.
func (l *language) functionHint(name string, isMethod bool) string {
	if !isMethod {
		if slices.Contains(l.methods, name) {
			return "it is called as x." + name + "(...)"
		}
		if near := nearest.Word(name, l.functions); near != "" {
			return "did you mean " + near + "(x)?"
		}
		return "the functions are " + listFunctions(l.functions, name) + "; called as x.f(): " + listMethods(l.methods)
	}
	if slices.Contains(l.functions, name) {
		return "it is called as " + name + "(x)"
	}
	if near := nearest.Word(name, l.methods); near != "" {
		return "did you mean ." + near + "()?"
	}
	return "there are " + listMethods(l.methods)
}

// listFunctions formats the function names. It leaves out the many mathematical ones, unless name is one of them.
func listFunctions(functions []string, name string) string {
	const mathematics = "math."
	isOne := strings.HasPrefix(name, mathematics)
	list := slices.DeleteFunc(slices.Clone(functions), func(f string) bool { return strings.HasPrefix(f, mathematics) != isOne })
	if !isOne {
		list = append(list, mathematics+"abs and others of "+mathematics)
	}
	return strings.Join(list, ", ")
}

// listMethods formats the method names without the many methods of timestamps.
func listMethods(methods []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(methods), func(name string) bool {
		return strings.HasPrefix(name, "get")
	}), ", ")
}

// explainCall returns a better error if the problem is a call of a function that the language does not have, or not in that
// form.
func (l *language) explainCall(problem *Error, s *source, tree *ast.AST) *Error {
	better := problem
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		at := tree.SourceInfo().GetStartLocation(e.ID())
		if e.Kind() != ast.CallKind || s.offsetOf(at.Line(), at.Column()) != problem.offset {
			return
		}
		c := e.AsCall()
		name, isMethod := c.FunctionName(), c.IsMemberFunction()
		if isMethod && (isVariable(c.Target(), "math") || isVariable(c.Target(), "strings")) {
			name, isMethod = c.Target().AsIdent()+"."+name, false
		}
		isFunction, isItsMethod := slices.Contains(l.functions, name), slices.Contains(l.methods, name)
		switch {
		case isMethod && !isItsMethod:
			better = errorAt(s.written, problem.offset, l.functionHint(name, isMethod), "there is no function .%s()", name)
		case !isMethod && !isFunction && (isItsMethod || !l.env.HasFunction(name)):
			better = errorAt(s.written, problem.offset, l.functionHint(name, isMethod), "there is no function %s()", name)
		}
	}))
	return better
}
