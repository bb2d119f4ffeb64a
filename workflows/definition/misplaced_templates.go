package definition

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/secretref"
)

// expressionFields hold an expression; a separate rule reports `${{` in them.
var expressionFields = map[protoreflect.FullName]bool{
	"switchyard.v1.TaskDefinition.condition": true,
	"switchyard.v1.TaskDefinition.parallel":  true,
	"switchyard.v1.TaskDefinition.foreach":   true,
	"switchyard.v1.Cache.key":                true,
	"switchyard.v1.RetryPolicy.when":         true,
	"switchyard.v1.Notification.if":          true,
}

// templateFields may hold templates, or are texts for people.
var templateFields = map[protoreflect.FullName]bool{
	"switchyard.v1.TaskDefinition.env":          true,
	"switchyard.v1.TaskDefaults.env":            true,
	"switchyard.v1.Definition.description":      true,
	"switchyard.v1.InputDefinition.description": true,
	specField:                            true,
	"switchyard.v1.TaskDefinition.mutex": true,
	"switchyard.v1.Semaphore.name":       true,
	"switchyard.v1.Notification.message": true,
}

// misplacedTemplates reports `${{` where no template is replaced.
type misplacedTemplates struct{ *decoder }

// check reports `${{` in fields where no template is replaced and the text would be taken literally.
func (r misplacedTemplates) check(m protoreflect.Message, p *source.Path) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if templateFields[field.FullName()] {
			return true
		}
		at := p.Field(field.JSONName())
		switch {
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				r.checkValue(field.MapValue(), value, at.Key(key.String()))
				return true
			})
		case field.IsList():
			for i := range value.List().Len() {
				r.checkValue(field, value.List().Get(i), at.Item(i))
			}
		case expressionFields[field.FullName()]:
			r.bareExpression(field, value, at)
		default:
			r.checkValue(field, value, at)
		}
		return true
	})
}

func (r misplacedTemplates) checkValue(field protoreflect.FieldDescriptor, value protoreflect.Value, p *source.Path) {
	switch {
	case field.Kind() == protoreflect.StringKind:
		if condition.HasTemplate(value.String()) {
			r.report(value.String(), p)
		}
	case field.Message() == nil:
	case field.Message().FullName() == structName:
		r.checkFree(structpb.NewStructValue(value.Message().Interface().(*structpb.Struct)), p)
	case field.Message().FullName() == valueName:
		r.checkFree(value.Message().Interface().(*structpb.Value), p)
	default:
		r.check(value.Message(), p)
	}
}

// checkFree reports every template in free-form data.
func (r misplacedTemplates) checkFree(v *structpb.Value, p *source.Path) {
	for at, text := range texts(v, p) {
		if condition.HasTemplate(text) {
			r.report(text, at)
		}
	}
}

// bareExpression reports an expression in `${{ }}` in a field that takes a bare expression.
func (r misplacedTemplates) bareExpression(field protoreflect.FieldDescriptor, value protoreflect.Value, p *source.Path) {
	text := ""
	if field.Kind() == protoreflect.StringKind {
		text = value.String()
	} else {
		v := value.Message().Interface().(*structpb.Value)
		if _, is := v.GetKind().(*structpb.Value_StringValue); !is {
			r.checkFree(v, p)
			return
		}
		text = v.GetStringValue()
	}
	inner, opened := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(text), "$"), "{{")
	inner, closed := strings.CutSuffix(inner, "}}")
	if opened && closed {
		r.Fail(r.locate(p), p, p.Local()+" is an expression, written without braces", "write "+source.Quote(strings.TrimSpace(inner)))
	}
}

// report reports a template in a place where none is replaced.
func (r misplacedTemplates) report(text string, p *source.Path) {
	hint := "use it in env: FILE: ${{ parent.discover.output.file }}"
	switch label := p.Local(); {
	case strings.HasPrefix(label, "secretEnv."):
		hint = "a reference to a secret is a constant: " + secretref.Forms
	case label == "input" || strings.HasPrefix(label, "input."):
		hint = "pass it through env, or read it from the file $SWITCHYARD_INPUT, which contains the outputs of parents and the inputs of the run"
	}
	r.Fail(r.locateInText(text, strings.Index(text, "${{"), p), p, fmt.Sprintf("${{ }} is only replaced in spec, env, the name of a lock and the message of notify, not in %s", p.Local()), hint)
}
