package condition

import (
	"slices"
	"strings"
	"unicode"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
)

// Names of the two variables.
const (
	parentVariable   = "parent"
	workflowVariable = "workflow"
)

// reading is one place where an expression reads `parent`.
type reading struct {
	task   string // empty when only the value of the expression tells which
	offset int    // of the name, in bytes of the expression as written
}

// references walks a parsed expression and lists what it reads of `parent`, in
// the order of the text. It also refuses what would make the list wrong (a loop
// variable that hides `parent`) or the cost unbounded.
type references struct {
	source *source
	info   *ast.SourceInfo
	found  []reading
	loops  int
}

func readings(s *source, tree *ast.AST) ([]reading, *Error) {
	r := references{source: s, info: tree.SourceInfo()}
	if err := r.walk(tree.Expr(), 0); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.found, func(a, b reading) int { return a.offset - b.offset })
	return r.found, nil
}

func (r *references) walk(e ast.Expr, depth int) *Error {
	if depth > maxDepth {
		return r.refuse(e, "", "the expression nests more than %d levels", maxDepth)
	}
	switch e.Kind() {
	case ast.IdentKind:
		if isVariable(e, parentVariable) {
			r.found = append(r.found, reading{offset: r.offset(e)})
		}
	case ast.SelectKind:
		s := e.AsSelect()
		if isVariable(s.Operand(), parentVariable) {
			r.found = append(r.found, reading{task: s.FieldName(), offset: r.name(e, s.FieldName())})
			return nil
		}
		return r.walk(s.Operand(), depth+1)
	case ast.CallKind:
		return r.call(e, depth)
	case ast.ListKind:
		return r.all(e, e.AsList().Elements(), depth)
	case ast.MapKind:
		var parts []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return r.all(e, parts, depth)
	case ast.StructKind:
		return r.refuse(e, "a map is {'key': value}", "a condition cannot make a message")
	case ast.ComprehensionKind:
		return r.loop(e, depth)
	}
	return nil
}

func (r *references) call(e ast.Expr, depth int) *Error {
	c := e.AsCall()
	if args := c.Args(); c.FunctionName() == operators.Index && len(args) == 2 && isVariable(args[0], parentVariable) {
		if args[1].Kind() == ast.LiteralKind {
			if task, ok := args[1].AsLiteral().Value().(string); ok {
				r.found = append(r.found, reading{task: task, offset: r.offset(args[1])})
				return nil
			}
		}
	}
	if c.FunctionName() == overloads.Matches && len(c.Args()) > 0 {
		if problem := r.regularExpression(c.Args()[len(c.Args())-1]); problem != nil {
			return problem
		}
	}
	if c.IsMemberFunction() {
		if err := r.walk(c.Target(), depth+1); err != nil {
			return err
		}
	}
	for _, arg := range c.Args() {
		if err := r.walk(arg, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// regularExpression refuses a pattern that is written out and invalid.
func (r *references) regularExpression(e ast.Expr) *Error {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	text, ok := e.AsLiteral().Value().(string)
	if !ok {
		return nil
	}
	if err := compilePattern(text).err; err != nil {
		return r.refuse(e, "regular expressions are RE2's: no look-around, no back-references", "%v", err)
	}
	return nil
}

func (r *references) all(e ast.Expr, parts []ast.Expr, depth int) *Error {
	if len(parts) > 2*maxLiteral || e.Kind() == ast.ListKind && len(parts) > maxLiteral {
		return r.refuse(e, "", "the literal has more than %d entries", maxLiteral)
	}
	for _, part := range parts {
		if err := r.walk(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *references) loop(e ast.Expr, depth int) *Error {
	if r.loops++; r.loops > maxLoops {
		return r.refuse(e, "", "the expression has more than %d loops", maxLoops)
	}
	c := e.AsComprehension()
	for _, name := range []string{c.IterVar(), c.IterVar2()} {
		if name == parentVariable || name == workflowVariable {
			return r.refuse(e, "choose another name", "the loop variable %s hides what conditions are about", name)
		}
	}
	for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
		if err := r.walk(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *references) refuse(e ast.Expr, hint, format string, args ...any) *Error {
	return errorAt(r.source.written, r.offset(e), hint, format, args...)
}

// offset is where CEL places an expression: at its operator.
func (r *references) offset(e ast.Expr) int {
	at := r.info.GetStartLocation(e.ID())
	return r.source.offsetOf(at.Line(), at.Column())
}

// name is where the field of a selection stands: CEL places a selection at its
// point, and has() at its bracket.
func (r *references) name(e ast.Expr, field string) int {
	from := r.offset(e)
	if i := strings.Index(r.source.written[from:], field); i >= 0 {
		gap := r.source.written[from : from+i]
		if !strings.ContainsFunc(gap, func(c rune) bool { return c != '.' && !unicode.IsSpace(c) }) || strings.Contains(gap, parentVariable) {
			return from + i
		}
	}
	return from
}

// isVariable also knows `.parent`, CEL's way to say that no container is meant.
func isVariable(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == name
}
