package condition

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/nearest"
)

// inputs reports literals that a declared input of the run never is: those of another type, and those that its enum lacks.
func (d *doubts) inputs(c comparison) {
	for i, side := range c.sides {
		name := inputOf(side)
		declared := d.Input(name)
		if name == "" || declared == nil || c.isPart(i) {
			continue
		}
		for _, literal := range constants(c.sides[1-i]) {
			value, err := scalar(literal.AsLiteral())
			kind := cmp.Or(declared.GetType(), "string")
			if _, isNull := value.GetKind().(*structpb.Value_NullValue); err != nil || isNull {
				continue
			}
			shown := shownConstant(value)
			switch values := texts(declared.GetEnum()); {
			case !hasInputType(value, kind):
				hint := "compare with a value of type " + kind
				if kind == "string" {
					hint = "write '" + Text(value) + "'"
				} else if _, isText := value.GetKind().(*structpb.Value_StringValue); isText && kind != "list" && kind != "object" {
					hint = "write " + Text(value) + " without quotes"
				}
				d.doubt(literal, hint, "%s.input.%s has the type %s, so it is never %s", workflowVariable, name, kind, shown)
			case len(values) > 0 && !slices.Contains(values, Text(value)):
				hint := "its values are " + strings.Join(values, ", ")
				if near := nearest.Word(Text(value), values); near != "" {
					hint = "did you mean '" + near + "'? " + strings.ToUpper(hint[:1]) + hint[1:]
				}
				d.doubt(literal, hint, "%s.input.%s is never %s", workflowVariable, name, shown)
			}
		}
	}
}

// constants returns the literals of any type in an expression: the expression itself, or the items of a list.
func constants(e ast.Expr) []ast.Expr {
	all := []ast.Expr{e}
	if e.Kind() == ast.ListKind {
		all = slices.Clone(e.AsList().Elements())
	}
	return slices.DeleteFunc(all, func(item ast.Expr) bool { return item.Kind() != ast.LiteralKind })
}

// inputOf returns the name of the input of the run that an expression is, or "".
func inputOf(e ast.Expr) string {
	switch e.Kind() {
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() && isRunInput(s.Operand()) {
			return s.FieldName()
		}
	case ast.CallKind:
		if of, key, ok := keyed(e.AsCall()); ok && isRunInput(of) {
			return key
		}
	}
	return ""
}

// hasInputType reports whether a scalar may equal a value of a type of inputs.
func hasInputType(value *structpb.Value, kind string) bool {
	switch value.GetKind().(type) {
	case *structpb.Value_StringValue:
		return kind == "string"
	case *structpb.Value_NumberValue:
		return kind == "number" || kind == "integer"
	case *structpb.Value_BoolValue:
		return kind == "boolean"
	}
	return true
}

func shownConstant(value *structpb.Value) string {
	if _, isText := value.GetKind().(*structpb.Value_StringValue); isText {
		return "'" + Text(value) + "'"
	}
	return Text(value)
}

func texts(values []*structpb.Value) (all []string) {
	for _, value := range values {
		all = append(all, Text(value))
	}
	return all
}
