package condition

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
)

// expression is a parsed and checked expression.
type expression struct {
	kind     Kind
	source   *source
	readings []reading
	checked  *cel.Ast
}

// isBlank reports whether an expression is empty or blank. A blank condition is true.
func isBlank(expr string) bool { return strings.TrimSpace(expr) == "" }

// parse rewrites and parses an expression and lists what it reads. check is the next step.
func (l *language) parse(expr string, kind Kind) (s *source, parsed *cel.Ast, found []reading, problem *Error) {
	if len(expr) > maxLength {
		return nil, nil, nil, errorAt("", 0, "", "the expression is longer than %d bytes", maxLength)
	}
	if !utf8.ValidString(expr) {
		return nil, nil, nil, errorAt("", 0, "", "the expression is not valid UTF-8")
	}
	// CEL's parser and checker recover from their own panics and report limits as errors, but their input is anything that a
	// person can type.
	defer recoverTo(expr, &problem)
	if s, problem = rewrite(expr, kind); problem != nil {
		return nil, nil, nil, problem
	}
	parsed, issues := l.env.ParseSource(common.NewStringSource(s.cel, sourceName))
	if problem = firstIssue(s, issues, kind); problem != nil {
		return nil, nil, nil, problem
	}
	if found, problem = readings(s, parsed.NativeRep(), kind); problem != nil {
		return nil, nil, nil, problem
	}
	return s, parsed, found, nil
}

// check type-checks a parsed expression.
func (l *language) check(s *source, parsed *cel.Ast, found []reading, kind Kind) (e *expression, problem *Error) {
	defer recoverTo(s.written, &problem)
	checked, issues := l.env.Check(parsed)
	if problem := firstIssue(s, issues, kind); problem != nil {
		var explained *Error
		for _, one := range problem.each() {
			explained = addMore(explained, l.explainCall(one, s, parsed.NativeRep()))
		}
		return nil, explained
	}
	if t := checked.OutputType(); !kind.takes(t) {
		return nil, errorAt(s.written, len(s.written)-len(strings.TrimLeft(s.written, " \t\r\n")), kind.typeHint(t),
			"%s; this one is of type %s", kind.wanted(), t)
	}
	e = &expression{kind: kind, source: s, readings: found, checked: checked}
	if problem := e.checkWords(); problem != nil {
		return nil, problem
	}
	return e, nil
}

// compile parses and checks an expression without a graph.
func (l *language) compile(expr string, kind Kind) (*expression, *Error) {
	s, parsed, found, problem := l.parse(expr, kind)
	if problem != nil {
		return nil, problem
	}
	return l.check(s, parsed, found, kind)
}

// offset returns the offset of a part of a checked expression in the expression as written.
func (e *expression) offset(part ast.Expr) int {
	at := e.checked.NativeRep().SourceInfo().GetStartLocation(part.ID())
	return e.source.offsetOf(at.Line(), at.Column())
}

func recoverTo(expr string, problem **Error) {
	if r := recover(); r != nil {
		*problem = errorAt(expr, 0, "", "CEL cannot take this expression: %v", r)
	}
}

// firstIssue returns CEL's first error, located in the expression as written, with further independent errors attached.
func firstIssue(s *source, issues *cel.Issues, kind Kind) (problem *Error) {
	if issues == nil || len(issues.Errors()) == 0 {
		return nil
	}
	all := slices.SortedStableFunc(slices.Values(issues.Errors()), func(a, b *cel.Error) int {
		if a, b := isConsequence(a), isConsequence(b); a != b {
			if a {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Location.Line()-b.Location.Line(), a.Location.Column()-b.Location.Column())
	})
	for i, issue := range all {
		if i > 0 && (isConsequence(issue) || isSyntax(issue)) {
			break
		}
		message, hint := explain(issue.Message, kind)
		problem = addMore(problem, errorAt(s.written, s.offsetOf(issue.Location.Line(), issue.Location.Column()), hint, "%s", message))
	}
	return problem
}

// isSyntax reports whether an error comes from the parser. Only the first such error is reliable.
func isSyntax(issue *cel.Error) bool { return strings.Contains(issue.Message, "Syntax error") }

// isConsequence reports whether an error is about an operand that already has an error.
func isConsequence(issue *cel.Error) bool { return strings.Contains(issue.Message, "!error!") }
