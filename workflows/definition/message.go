package definition

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/definition/source"
	"switchyard/workflows/secretref"
)

// messageReader fills messages from a tree and records the place of every value.
type messageReader struct {
	*decoder
	unknown *unknownFields
	// inline reads and checks the definition in the spec of a task of type run, and returns it in canonical form.
	inline func(n *source.Node, p *source.Path) (*structpb.Struct, bool)
}

// message decodes a mapping into a message, field by field.
func (r *messageReader) message(n *source.Node, m protoreflect.Message, p *source.Path) {
	if n.Kind != source.Mapping {
		r.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a mapping", shortHint(m.Descriptor().Name(), n))
		return
	}
	fields := m.Descriptor().Fields()
	seen := map[protoreflect.FieldNumber]string{}
	for _, e := range withRetries(n, m.Descriptor()) {
		field := fields.ByJSONName(e.Key)
		if field == nil {
			field = fields.ByName(protoreflect.Name(e.Key))
		}
		if field == nil {
			field = acceptedAlias(e.Key, m.Descriptor())
		}
		if field == nil && isExtension(e.Key, m.Descriptor()) {
			continue
		}
		if field == nil {
			r.unknown.report(e, n, m.Descriptor(), p)
			continue
		}
		at := p.Field(field.JSONName())
		if before, twice := seen[field.Number()]; twice {
			r.Add(e.At, at, fmt.Sprintf("%s and %s are two spellings of one field", before, e.Key), "keep "+field.JSONName())
			continue
		}
		seen[field.Number()] = e.Key
		r.setPlace(at, place{e.At, e.Value})
		if e.Value.Kind != source.Null || field.Name() == commandField {
			r.field(e.Value, m, field, at)
		}
	}
}

// These are messages for free-form data, and the fields that have special rules.
const (
	structName = protoreflect.FullName("google.protobuf.Struct")
	valueName  = protoreflect.FullName("google.protobuf.Value")
	// typeField determines the message of specField.
	typeField = protoreflect.FullName("switchyard.v1.TaskDefinition.type")
	// defaultTypeField is the type of tasks that have none of their own.
	defaultTypeField = protoreflect.FullName("switchyard.v1.TaskDefaults.type")
	// specField is a struct in the model; here it is a message that depends on the type of its task.
	specField = protoreflect.FullName("switchyard.v1.TaskDefinition.spec")
	// inlineField is a struct in the model that holds a whole definition.
	inlineField = protoreflect.FullName("switchyard.v1.RunSpec.definition")
	// sourceField is a message in the model; its text alone is a folder.
	sourceField = protoreflect.FullName("switchyard.v1.Definition.source")
	// commandField and entrypointField are values in the model; only some kinds of them can be executed.
	commandField    = protoreflect.Name("command")
	entrypointField = protoreflect.Name("entrypoint")
)

func isTaskType(field protoreflect.FieldDescriptor) bool {
	return field.FullName() == typeField || field.FullName() == defaultTypeField
}

func (r *messageReader) field(n *source.Node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *source.Path) {
	switch {
	case field.IsMap():
		r.mapField(n, m, field, p)
	case field.IsList():
		r.listField(n, m, field, p)
	default:
		if value, ok := r.value(n, m.NewField(field), field, p); ok {
			m.Set(field, value)
		}
	}
}

func (r *messageReader) mapField(n *source.Node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *source.Path) {
	if n.Kind != source.Mapping && field.Name() == secretEnvField {
		r.AddHidden(n.At, p, p.Local()+" must be a mapping of variables to references", secretref.Forms)
		r.Settle(p)
		return
	}
	if n.Kind != source.Mapping {
		hint := ""
		switch value := field.MapValue().Message(); {
		case value != nil && isTask(value):
			hint = "write NAME: { type: shell, spec: { command: ... } } for each task"
		case n.Kind == source.Sequence:
			hint = "write NAME: VALUE, without dashes"
		}
		r.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a mapping", hint)
		return
	}
	if len(n.Entries) == 0 {
		return
	}
	entries := m.Mutable(field).Map()
	for _, e := range n.Entries {
		at := p.Key(e.Key)
		r.setPlace(at, place{e.At, e.Value})
		value, ok := r.value(e.Value, entries.NewValue(), field.MapValue(), at)
		if ok || field.MapValue().Message() != nil {
			// A task that cannot be decoded is kept, so that tasks that depend on it are not reported.
			entries.Set(protoreflect.ValueOfString(e.Key).MapKey(), value)
		}
	}
}

// listField decodes a list. It accepts a single scalar as a list of one, because people write `dependsOn: build`.
func (r *messageReader) listField(n *source.Node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *source.Path) {
	items := n.Items
	if n.Kind != source.Sequence {
		if _, scalar := n.ScalarText(); !scalar || field.Message() != nil {
			r.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a list", entryHint(field.Message(), n))
			return
		}
		items = []*source.Node{n}
	}
	if len(items) == 0 {
		return
	}
	list := m.Mutable(field).List()
	for i, item := range items {
		at := p.Item(i)
		r.setPlace(at, place{item.At, item})
		value, ok := r.value(item, list.NewElement(), field, at)
		if !ok && field.Message() == nil {
			value = list.NewElement() // keeps the indices of the following items right
		}
		list.Append(value)
	}
}

// value decodes a single value. empty is a new value of its kind, which value fills if it is a message. ok is false if value
// has reported a problem.
func (r *messageReader) value(n *source.Node, empty protoreflect.Value, field protoreflect.FieldDescriptor, p *source.Path) (protoreflect.Value, bool) {
	wrong := func(want, hint string) (protoreflect.Value, bool) {
		if field.Parent().Name() == secretEnvEntry {
			r.AddHidden(n.At, p, p.Local()+" must be a reference to a secret", secretref.Forms)
			r.Settle(p)
			return empty, false
		}
		r.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be "+want, hint)
		return empty, false
	}
	switch field.Kind() {
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case structName:
			if field.FullName() == specField {
				// Its content depends on the type, which may come later.
				if n.Kind != source.Mapping {
					return wrong("a mapping", specHint(r.writtenType(p.Parent), n))
				}
				return empty, true
			}
			read := r.freeStruct
			if field.FullName() == inlineField {
				read = r.inline
			}
			s, ok := read(n, p)
			if !ok {
				return empty, false
			}
			r.warnOfField(n, field, p)
			return protoreflect.ValueOfMessage(s.ProtoReflect()), true
		case valueName:
			read := r.freeValue
			switch field.Name() {
			case commandField:
				read = r.command
			case entrypointField:
				read = r.entrypoint
			case shellField:
				read = r.shell
			}
			v, ok := read(n, p)
			r.warnOfField(n, field, p)
			return protoreflect.ValueOfMessage(v.ProtoReflect()), ok
		}
		if field.FullName() == sourceField && n.Kind == source.Str {
			n = &source.Node{Kind: source.Mapping, At: n.At, Entries: []source.Entry{{Key: "dir", At: n.At, Value: n}}}
		}
		r.message(n, empty.Message(), p)
		return empty, true
	case protoreflect.StringKind:
		if text, ok := n.ScalarText(); ok {
			return protoreflect.ValueOfString(text), true
		}
		if n.Kind == source.Null {
			return wrong("a string", `write "" for an empty one`)
		}
		return wrong("a string", singleHint(field, n))
	case protoreflect.BoolKind:
		if n.Kind == source.Boolean {
			return protoreflect.ValueOfBool(n.Truth), true
		}
		return wrong("true or false", truthHint(n.Text))
	case protoreflect.Int32Kind:
		switch {
		case n.Kind != source.Number || n.Value != math.Trunc(n.Value):
			return wrong("a whole number", numberHint(n.Text, field, true))
		case n.Value < math.MinInt32 || n.Value > math.MaxInt32:
			return wrong(cmp.Or(rulesOf(field).wants(), "at most "+strconv.Itoa(math.MaxInt32)), "")
		}
		return protoreflect.ValueOfInt32(int32(n.Value)), true
	case protoreflect.DoubleKind:
		if n.Kind != source.Number || math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			return wrong("a number", numberHint(n.Text, field, false))
		}
		return protoreflect.ValueOfFloat64(n.Value), true
	}
	panic("definition: the model has a field of a kind that no document holds: " + string(field.FullName()))
}
