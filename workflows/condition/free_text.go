package condition

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
)

// CanBeAnyText reports whether the value of an expression of kind Value may be or contain a text that the author of the
// workflow does not choose, such as an input of the run or the output of a task. isChosen reports whether the author chooses
// all values of a field of `workflow.input` (ofRun) or of `input`. CanBeAnyText returns false for an expression that cannot be
// parsed.
func CanBeAnyText(expr string, isChosen func(ofRun bool, field string) bool) bool {
	l, err := theLanguage()
	if err != nil {
		return false
	}
	_, tree, _, problem := l.parse(expr, Value)
	if problem != nil {
		return false
	}
	return freeText{isChosen}.canBe(tree.NativeRep().Expr())
}

type freeText struct {
	isChosen func(ofRun bool, field string) bool
}

// harmlessCalls are functions that return no text, or only text of a fixed form.
var harmlessCalls = []string{
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.In, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
	operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
	overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble, overloads.TypeConvertBool, overloads.Size,
	overloads.Matches, overloads.Contains, overloads.StartsWith, overloads.EndsWith, "indexOf", "lastIndexOf",
}

func (f freeText) canBe(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return true
	case ast.SelectKind:
		s := e.AsSelect()
		return !s.IsTestOnly() && f.selected(s.Operand(), s.FieldName())
	case ast.ListKind:
		return slices.ContainsFunc(e.AsList().Elements(), f.canBe)
	case ast.MapKind:
		return slices.ContainsFunc(e.AsMap().Entries(), func(entry ast.EntryExpr) bool {
			return f.canBe(entry.AsMapEntry().Key()) || f.canBe(entry.AsMapEntry().Value())
		})
	case ast.ComprehensionKind:
		accumulator := e.AsComprehension().AccuInit() // true or false for all and exists
		return accumulator.Kind() != ast.LiteralKind && f.canBe(e.AsComprehension().IterRange())
	case ast.CallKind:
		return f.called(e.AsCall())
	}
	return false
}

func (f freeText) called(c ast.CallExpr) bool {
	of, key, isKeyed := keyed(c)
	switch {
	case isKeyed:
		return f.selected(of, key)
	case slices.Contains(harmlessCalls, c.FunctionName()):
		return false
	case c.FunctionName() == operators.Conditional:
		return slices.ContainsFunc(c.Args()[1:], f.canBe)
	case c.IsMemberFunction() && f.canBe(c.Target()):
		return true
	}
	return slices.ContainsFunc(c.Args(), f.canBe)
}

// selected reports whether a field of an expression can be any text.
func (f freeText) selected(of ast.Expr, field string) bool {
	switch {
	case isVariable(of, workflowVariable):
		return field != "name" && field != "runId"
	case isVariable(of, runVariable):
		return field == "error" || field == "input" || field == "submittedBy" || field == "batch"
	case isVariable(of, inputVariable):
		return !f.isChosen(false, field)
	case isRunInput(of):
		return !f.isChosen(true, field)
	}
	if isTask(of) || of.Kind() == ast.SelectKind && of.AsSelect().FieldName() == "result" && isTask(of.AsSelect().Operand()) {
		return slices.Contains([]string{"stdout", "stderr", "output", "outputs", "result", "error"}, field)
	}
	return f.canBe(of)
}

// holdsTasks reports whether an expression is a variable that holds tasks.
func holdsTasks(e ast.Expr) bool {
	return isVariable(e, parentVariable) || isVariable(e, tasksVariable)
}

// isTask reports whether an expression is parent.<task> or tasks.<task>.
func isTask(e ast.Expr) bool {
	switch e.Kind() {
	case ast.SelectKind:
		return holdsTasks(e.AsSelect().Operand())
	case ast.CallKind:
		of, _, ok := keyed(e.AsCall())
		return ok && holdsTasks(of)
	}
	return false
}
