package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/secretref"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// expressionFields hold an expression; a separate rule reports `${{` in them.
var expressionFields = map[protoreflect.FullName]bool{
	"switchyard.v1.TaskDefinition.condition": true,
	"switchyard.v1.TaskDefinition.parallel":  true,
	"switchyard.v1.TaskDefinition.foreach":   true,
	"switchyard.v1.Cache.key":                true,
	"switchyard.v1.RetryPolicy.when":         true,
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
}

// noTemplates reports `${{` in fields where no template is replaced and the text would be taken literally.
func (d *decoder) noTemplates(m protoreflect.Message, p *source.Path) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if templateFields[field.FullName()] {
			return true
		}
		at := p.Field(field.JSONName())
		switch {
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				d.noTemplate(field.MapValue(), value, at.Key(key.String()))
				return true
			})
		case field.IsList():
			for i := range value.List().Len() {
				d.noTemplate(field, value.List().Get(i), at.Item(i))
			}
		case expressionFields[field.FullName()]:
			d.bareExpression(field, value, at)
		default:
			d.noTemplate(field, value, at)
		}
		return true
	})
}

func (d *decoder) noTemplate(field protoreflect.FieldDescriptor, value protoreflect.Value, p *source.Path) {
	switch {
	case field.Kind() == protoreflect.StringKind:
		if condition.HasTemplate(value.String()) {
			d.misplaced(p)
		}
	case field.Message() == nil:
	case field.Message().FullName() == structName:
		d.noTemplateIn(structpb.NewStructValue(value.Message().Interface().(*structpb.Struct)), p)
	case field.Message().FullName() == valueName:
		d.noTemplateIn(value.Message().Interface().(*structpb.Value), p)
	default:
		d.noTemplates(value.Message(), p)
	}
}

// noTemplateIn reports every template in free-form data.
func (d *decoder) noTemplateIn(v *structpb.Value, p *source.Path) {
	if !holdsTemplate(v) {
		return
	}
	switch v := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		d.misplaced(p)
	case *structpb.Value_ListValue:
		for i, item := range v.ListValue.GetValues() {
			d.noTemplateIn(item, p.Item(i))
		}
	case *structpb.Value_StructValue:
		for _, name := range slices.Sorted(maps.Keys(v.StructValue.GetFields())) {
			d.noTemplateIn(v.StructValue.GetFields()[name], p.Key(name))
		}
	}
}

// bareExpression reports an expression in `${{ }}` in a field that takes a bare expression.
func (d *decoder) bareExpression(field protoreflect.FieldDescriptor, value protoreflect.Value, p *source.Path) {
	text := ""
	if field.Kind() == protoreflect.StringKind {
		text = value.String()
	} else {
		v := value.Message().Interface().(*structpb.Value)
		if _, is := v.GetKind().(*structpb.Value_StringValue); !is {
			d.noTemplateIn(v, p)
			return
		}
		text = v.GetStringValue()
	}
	inner, opened := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(text), "$"), "{{")
	inner, closed := strings.CutSuffix(inner, "}}")
	if opened && closed && !d.IsSettled(p) {
		d.Fail(d.locate(p), p, p.Local()+" is an expression, and stands without braces", "write "+source.Quote(strings.TrimSpace(inner)))
	}
}

// misplaced reports a template in a place where none is replaced.
func (d *decoder) misplaced(p *source.Path) {
	if d.IsSettled(p) {
		return
	}
	hint := "in env it works: FILE: ${{ parent.discover.output.file }}"
	switch label := p.Local(); {
	case strings.HasPrefix(label, "secretEnv."):
		hint = "a reference to a secret is a constant: " + secretref.Forms
	case label == "input" || strings.HasPrefix(label, "input."):
		hint = "pass it through env, or read it in the file $SWITCHYARD_INPUT, which has the outputs of parents and the inputs of the run"
	}
	at := d.locate(p)
	if n := d.nodeAt(p); n != nil {
		at = n.At
		if inside, ok := d.Lines.Inside(n, source.OffsetOf(n.Text, max(0, strings.Index(n.Text, "${{")))); ok {
			at = inside
		}
	}
	d.Fail(at, p, fmt.Sprintf("${{ }} is replaced in spec, env and the name of a lock, and nowhere else; not in %s", p.Local()), hint)
}
