package condition

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
)

// expression is one that was parsed and checked.
type expression struct {
	source   *source
	readings []reading
	checked  *cel.Ast
}

// isBlank tells whether there is no condition; that is true.
func isBlank(expr string) bool { return strings.TrimSpace(expr) == "" }

// parse rewrites and parses an expression and lists what it reads; check is to
// follow.
func (l *language) parse(expr string) (s *source, ast *cel.Ast, found []reading, problem *Error) {
	if len(expr) > maxLength {
		return nil, nil, nil, errorAt("", 0, "", "the expression is longer than %d bytes", maxLength)
	}
	if !utf8.ValidString(expr) {
		return nil, nil, nil, errorAt("", 0, "", "the expression is not valid UTF-8")
	}
	// CEL's parser and checker recover from their own panics and report limits as
	// errors, but they are given whatever a person can type.
	defer recoverTo(expr, &problem)
	if s, problem = rewrite(expr); problem != nil {
		return nil, nil, nil, problem
	}
	ast, issues := l.env.ParseSource(common.NewStringSource(s.cel, sourceName))
	if problem = firstIssue(s, issues); problem != nil {
		return nil, nil, nil, problem
	}
	if found, problem = readings(s, ast.NativeRep()); problem != nil {
		return nil, nil, nil, problem
	}
	return s, ast, found, nil
}

// check type-checks a parsed expression.
func (l *language) check(s *source, ast *cel.Ast, found []reading) (e *expression, problem *Error) {
	defer recoverTo(s.written, &problem)
	checked, issues := l.env.Check(ast)
	if problem := firstIssue(s, issues); problem != nil {
		return nil, problem
	}
	if kind := checked.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, errorAt(s.written, len(s.written)-len(strings.TrimLeft(s.written, " \t\r\n")), boolHint(kind),
			"a condition must be true or false; this one is of type %s", kind)
	}
	return &expression{source: s, readings: found, checked: checked}, nil
}

// compile is parse and check without a graph.
func (l *language) compile(expr string) (*expression, *Error) {
	s, ast, found, problem := l.parse(expr)
	if problem != nil {
		return nil, problem
	}
	return l.check(s, ast, found)
}

func recoverTo(expr string, problem **Error) {
	if r := recover(); r != nil {
		*problem = errorAt(expr, 0, "", "CEL cannot take this expression: %v", r)
	}
}

// firstIssue is CEL's first complaint, put into the expression as written.
func firstIssue(s *source, issues *cel.Issues) *Error {
	if issues == nil || len(issues.Errors()) == 0 {
		return nil
	}
	first := slices.MinFunc(issues.Errors(), func(a, b *cel.Error) int {
		if a, b := isConsequence(a), isConsequence(b); a != b {
			if a {
				return 1
			}
			return -1
		}
		if a.Location.Line() != b.Location.Line() {
			return a.Location.Line() - b.Location.Line()
		}
		return a.Location.Column() - b.Location.Column()
	})
	offset := s.offsetOf(first.Location.Line(), first.Location.Column())
	message, hint := explain(first.Message)
	return errorAt(s.written, offset, hint, "%s", message)
}

// isConsequence tells whether a complaint is about an operand that was already
// complained about.
func isConsequence(issue *cel.Error) bool { return strings.Contains(issue.Message, "!error!") }

func boolHint(kind *cel.Type) string {
	switch kind.Kind() {
	case cel.StringKind:
		return "compare it: x != ''"
	case cel.IntKind, cel.DoubleKind, cel.UintKind:
		return "compare it: x == 0"
	case cel.ListKind, cel.MapKind:
		return "compare it: size(x) > 0"
	case cel.StructKind:
		return fmt.Sprintf("compare one of its fields, for instance the %s's state or name", kind.TypeName())
	}
	return ""
}
