package condition

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
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
		for _, literal := range d.constants(c.sides[1-i]) {
			value, err := scalar(literal.AsLiteral())
			kind := inputType(declared)
			if err != nil || value.GetKind() == nil || isNull(value) {
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
func (d *doubts) constants(e ast.Expr) (all []ast.Expr) {
	switch e.Kind() {
	case ast.LiteralKind:
		all = append(all, e)
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			if item.Kind() == ast.LiteralKind {
				all = append(all, item)
			}
		}
	}
	return all
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

func inputType(declared *v1.InputDefinition) string {
	if declared.GetType() == "" {
		return "string"
	}
	return declared.GetType()
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

func isNull(value *structpb.Value) bool {
	_, is := value.GetKind().(*structpb.Value_NullValue)
	return is
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
