package definition

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// decoder fills messages from a tree and remembers where everything was.
type decoder struct {
	*report
	base   *path                     // where the definition begins: the root, or the spec that it is inline in
	depth  int                       // definitions around this one
	places map[string]place          // by path; none for a definition that came as a message
	meant  []*path                   // named by hints, not yet settled
	inner  map[string]*v1.Definition // that are inline, by the path of the spec
}

// place is where a field or an entry of a map is in the document.
type place struct {
	key   position
	value *node
}

// definition decodes the document. specs are the tasks' specs as messages of
// their types, without those that cannot be read.
func (d *decoder) definition(n *node) (def *v1.Definition, specs map[string]proto.Message) {
	if d.places == nil {
		d.places = map[string]place{}
	}
	def = &v1.Definition{}
	if n.kind != mapping {
		d.fail(n.at, d.base, "a definition is a mapping with name and tasks; this is "+n.String(), "")
		return def, nil
	}
	d.places[d.base.String()] = place{n.at, n}
	d.message(n, def.ProtoReflect(), d.base)
	d.settleMeant()
	specs = d.complete(def)
	d.settleMeant()
	return def, specs
}

// complete brings a definition into its canonical form: tasks have what they
// inherit, and specs the shape of their types. It returns the specs as messages.
func (d *decoder) complete(def *v1.Definition) map[string]proto.Message {
	d.inputTexts(def)
	d.inherit(def)
	d.matrices(def)
	specs := make(map[string]proto.Message, len(def.GetTasks()))
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		task, at := def.GetTasks()[name], d.base.field("tasks").key(name).field("spec")
		n := structNode(task.GetSpec())
		if d.places != nil {
			n = d.places[at.String()].value
		}
		spec, canonical := d.spec(task.GetType(), n, at)
		if spec != nil {
			specs[name] = spec
		}
		if task.Spec != nil {
			task.Spec = canonical
		}
	}
	return specs
}

// locate returns the position of the value of p, or of the nearest place
// around it that has one.
func (d *decoder) locate(p *path) position {
	if found, ok := d.places[p.String()]; ok && found.value.kind != null {
		return found.value.at
	}
	return d.locateKey(p)
}

// nodeAt returns the value of p in the document, that of free-form data too; nil
// when there is none.
func (d *decoder) nodeAt(p *path) *node {
	if found, ok := d.places[p.String()]; ok {
		return found.value
	}
	if p == nil {
		return nil
	}
	around := d.nodeAt(p.parent)
	switch {
	case around == nil:
	case p.index >= 0 && p.index < len(around.items):
		return around.items[p.index]
	case p.index < 0:
		for _, e := range around.entries {
			if e.key == p.name {
				return e.value
			}
		}
	}
	return nil
}

// locateFree is locate for a value inside free-form data.
func (d *decoder) locateFree(p *path) position {
	if n := d.nodeAt(p); n != nil && n.kind != null {
		return n.at
	}
	return d.locate(p)
}

// locateKey returns the position of the key of p, or of the nearest one around it.
func (d *decoder) locateKey(p *path) position {
	for {
		if found, ok := d.places[p.String()]; ok {
			return found.key
		}
		if p == nil {
			return position{}
		}
		p = p.parent
	}
}

// message decodes a mapping into a message, field by field.
func (d *decoder) message(n *node, m protoreflect.Message, p *path) {
	if n.kind != mapping {
		d.fail(n.at, p, p.local()+" is "+n.String()+"; it must be a mapping", shortHint(m.Descriptor().Name(), n))
		return
	}
	fields := m.Descriptor().Fields()
	seen := map[protoreflect.FieldNumber]string{}
	for _, e := range n.entries {
		field := fields.ByJSONName(e.key)
		if field == nil {
			field = fields.ByName(protoreflect.Name(e.key))
		}
		if field == nil && isExtension(e.key, m.Descriptor()) {
			continue
		}
		if field == nil {
			d.unknownField(e, n, m.Descriptor(), p)
			continue
		}
		at := p.field(field.JSONName())
		if before, twice := seen[field.Number()]; twice {
			d.add(e.at, at, fmt.Sprintf("%s and %s are two spellings of one field", before, e.key), "keep "+field.JSONName())
			continue
		}
		seen[field.Number()] = e.key
		d.put(at, place{e.at, e.value})
		if e.value.kind != null || field.Name() == commandField {
			d.field(e.value, m, field, at)
		}
	}
}

// extensionPrefix begins the keys at the top of a definition that are the author's own:
// a place for anchors.
const extensionPrefix = "x-"

// isExtension reports whether a key of a message is the author's own.
func isExtension(key string, m protoreflect.MessageDescriptor) bool {
	return strings.HasPrefix(key, extensionPrefix) && m.FullName() == "switchyard.v1.Definition"
}

// shortHint says what a message is that people write as if it were one value.
func shortHint(message protoreflect.Name, n *node) string {
	text, _ := n.scalarText()
	switch {
	case text == "":
	case message == "RunConcurrency" && n.kind == number:
		return "write { maxRuns: " + text + " }"
	case message == "Semaphore" && n.kind == str:
		return "write { name: " + text + ", limit: 2 }, or mutex: " + text
	case message == "Cache" && n.kind == str:
		return "write { key: ... }, with a CEL expression"
	case message == "InputDefinition":
		return "write { default: " + text + " }, or {} for an input without a default"
	}
	return ""
}

func (d *decoder) put(p *path, at place) {
	if d.places != nil {
		d.places[p.String()] = at
	}
}

// Messages that stand for free-form data.
const (
	structName = protoreflect.FullName("google.protobuf.Struct")
	valueName  = protoreflect.FullName("google.protobuf.Value")
	// typeField says which message specField is.
	typeField = protoreflect.FullName("switchyard.v1.TaskDefinition.type")
	// specField is a struct in the model and a message of its task's type here.
	specField = protoreflect.FullName("switchyard.v1.TaskDefinition.spec")
	// inlineField is a struct in the model that holds a whole definition.
	inlineField = protoreflect.FullName("switchyard.v1.RunSpec.definition")
	// commandField and entrypointField are values in the model, of which only some kinds can be run.
	commandField    = protoreflect.Name("command")
	entrypointField = protoreflect.Name("entrypoint")
)

func (d *decoder) field(n *node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *path) {
	switch {
	case field.IsMap():
		d.mapField(n, m, field, p)
	case field.IsList():
		d.listField(n, m, field, p)
	default:
		if value, ok := d.value(n, m.NewField(field), field, p); ok {
			m.Set(field, value)
		}
	}
}

func (d *decoder) mapField(n *node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *path) {
	if n.kind != mapping {
		hint := ""
		if n.kind == sequence {
			hint = "write NAME: VALUE, without dashes"
		}
		d.fail(n.at, p, p.local()+" is "+n.String()+"; it must be a mapping", hint)
		return
	}
	if len(n.entries) == 0 {
		return
	}
	entries := m.Mutable(field).Map()
	for _, e := range n.entries {
		at := p.key(e.key)
		d.put(at, place{e.at, e.value})
		value, ok := d.value(e.value, entries.NewValue(), field.MapValue(), at)
		if ok || field.MapValue().Message() != nil {
			// A task that cannot be read is kept, so that tasks that depend on it are not blamed.
			entries.Set(protoreflect.ValueOfString(e.key).MapKey(), value)
		}
	}
}

// listField decodes a list; a single scalar is a list of one, because that is
// what people write: `dependsOn: build`.
func (d *decoder) listField(n *node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *path) {
	items := n.items
	if n.kind != sequence {
		if _, scalar := n.scalarText(); !scalar || field.Message() != nil {
			d.fail(n.at, p, p.local()+" is "+n.String()+"; it must be a list", "")
			return
		}
		items = []*node{n}
	}
	if len(items) == 0 {
		return
	}
	list := m.Mutable(field).List()
	for i, item := range items {
		at := p.item(i)
		d.put(at, place{item.at, item})
		value, ok := d.value(item, list.NewElement(), field, at)
		if !ok && field.Message() == nil {
			value = list.NewElement() // so that the indices of the rest stay right
		}
		list.Append(value)
	}
}

// value decodes a single value. empty is a new value of its kind, which is
// filled when it is a message. Not ok: the value was reported.
func (d *decoder) value(n *node, empty protoreflect.Value, field protoreflect.FieldDescriptor, p *path) (protoreflect.Value, bool) {
	wrong := func(want, hint string) (protoreflect.Value, bool) {
		d.fail(n.at, p, p.local()+" is "+n.String()+"; it must be "+want, hint)
		return empty, false
	}
	switch field.Kind() {
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case structName:
			if field.FullName() == specField {
				// What it must hold depends on the type, which may come later.
				if n.kind != mapping {
					return wrong("a mapping", "")
				}
				return empty, true
			}
			read := d.freeStruct
			if field.FullName() == inlineField {
				read = d.inline
			}
			s, ok := read(n, p)
			if !ok {
				return empty, false
			}
			return protoreflect.ValueOfMessage(s.ProtoReflect()), true
		case valueName:
			read := d.freeValue
			switch field.Name() {
			case commandField:
				read = d.command
			case entrypointField:
				read = d.entrypoint
			}
			v, ok := read(n, p)
			return protoreflect.ValueOfMessage(v.ProtoReflect()), ok
		}
		d.message(n, empty.Message(), p)
		return empty, true
	case protoreflect.StringKind:
		if text, ok := n.scalarText(); ok {
			return protoreflect.ValueOfString(text), true
		}
		if n.kind == null {
			return wrong("a string", `write "" for an empty one`)
		}
		return wrong("a string", "")
	case protoreflect.BoolKind:
		if n.kind == boolean {
			return protoreflect.ValueOfBool(n.truth), true
		}
		return wrong("true or false", truthHint(n.text))
	case protoreflect.Int32Kind:
		switch {
		case n.kind != number || n.value != math.Trunc(n.value):
			return wrong("a whole number", numberHint(n.text, field, true))
		case n.value < math.MinInt32 || n.value > math.MaxInt32:
			return wrong(fmt.Sprintf("between %d and %d", math.MinInt32, math.MaxInt32), "")
		}
		return protoreflect.ValueOfInt32(int32(n.value)), true
	case protoreflect.DoubleKind:
		if n.kind != number || math.IsInf(n.value, 0) || math.IsNaN(n.value) {
			return wrong("a number", numberHint(n.text, field, false))
		}
		return protoreflect.ValueOfFloat64(n.value), true
	}
	panic("definition: the model has a field of a kind that no document holds: " + string(field.FullName()))
}

// freeStruct decodes a mapping of free-form data.
func (d *decoder) freeStruct(n *node, p *path) (*structpb.Struct, bool) {
	if n.kind != mapping {
		d.fail(n.at, p, p.local()+" is "+n.String()+"; it must be a mapping", "")
		return nil, false
	}
	v, ok := d.freeValue(n, p)
	return v.GetStructValue(), ok
}

// maxExact bounds the integers that stay what they are as doubles, which is
// what JSON numbers are; from here on two integers share one double.
const maxExact = 1 << 53

// freeValue decodes free-form data. An integer that a double cannot hold is a
// problem, because it would come out as another one.
func (d *decoder) freeValue(n *node, p *path) (*structpb.Value, bool) {
	switch n.kind {
	case boolean:
		return structpb.NewBoolValue(n.truth), true
	case number:
		switch {
		case math.IsInf(n.value, 0) || math.IsNaN(n.value):
			d.fail(n.at, p, n.text+" is out of the range of numbers", "write it as a string, in quotes")
			return structpb.NewNullValue(), false
		case n.whole && n.style != fromMessage && math.Abs(n.value) >= maxExact:
			d.fail(n.at, p, n.text+" cannot be kept exactly: integers must be below 2^53", "write it as a string, in quotes")
			return structpb.NewNullValue(), false
		}
		return structpb.NewNumberValue(n.value), true
	case str:
		return structpb.NewStringValue(n.text), true
	case sequence:
		list, ok := &structpb.ListValue{}, true
		for i, item := range n.items {
			v, good := d.freeValue(item, p.item(i))
			list.Values = append(list.Values, v)
			ok = ok && good
		}
		return structpb.NewListValue(list), ok
	case mapping:
		s, ok := &structpb.Struct{Fields: map[string]*structpb.Value{}}, true
		for _, e := range n.entries {
			v, good := d.freeValue(e.value, p.key(e.key))
			s.Fields[e.key] = v
			ok = ok && good
		}
		return structpb.NewStructValue(s), ok
	}
	return structpb.NewNullValue(), true
}
