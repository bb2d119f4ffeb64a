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
	"switchyard/workflows/definition/source"
	"switchyard/workflows/secretref"
)

// decoder fills messages from a tree and records the place of every value.
type decoder struct {
	*source.Report
	base     *source.Path              // start of the definition: the root, or the spec that contains it inline
	depth    int                       // number of enclosing definitions
	places   map[string]place          // by path; nil for a definition that came as a message
	meant    []*source.Path            // fields named by hints, not settled yet
	inner    map[string]*v1.Definition // inline definitions by the path of the spec
	stored   *[]StoredReference        // from this definition and its inline definitions
	heritage *heritage                 // nil if there are no defaults
	// inCommands is the number of expressions in command lines checked so far.
	inCommands int
}

func newDecoder(r *source.Report) *decoder {
	return &decoder{Report: r, stored: new([]StoredReference)}
}

// place is the position of a field or a map entry in the document.
type place struct {
	key   source.Position
	value *source.Node
}

// definition decodes the document. specs holds the tasks' specs as messages of their types, without unreadable ones.
func (d *decoder) definition(n *source.Node) (def *v1.Definition, specs map[string]proto.Message) {
	if d.places == nil {
		d.places = map[string]place{}
	}
	def = &v1.Definition{}
	if n.Kind != source.Mapping {
		d.Fail(n.At, d.base, "a definition is a mapping with name and tasks; this is "+n.String(), "")
		return def, nil
	}
	d.places[d.base.String()] = place{n.At, n}
	d.message(n, def.ProtoReflect(), d.base)
	d.settleMeant()
	specs = d.complete(def)
	d.settleMeant()
	return def, specs
}

// complete brings a definition into its canonical form: tasks have their inherited values, and specs the shape of their types.
// It returns the specs as messages.
func (d *decoder) complete(def *v1.Definition) map[string]proto.Message {
	d.inputTexts(def)
	d.inherit(def)
	d.matrices(def)
	specs := make(map[string]proto.Message, len(def.GetTasks()))
	for _, name := range slices.Sorted(maps.Keys(def.GetTasks())) {
		task, at := def.GetTasks()[name], d.base.Field("tasks").Key(name).Field("spec")
		n := source.StructNode(task.GetSpec())
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
		d.dropUnused(name, task)
	}
	d.unusedDefaults()
	return specs
}

// locate returns the position of the value at p, or that of the closest enclosing place that has one.
func (d *decoder) locate(p *source.Path) source.Position {
	if found, ok := d.places[p.String()]; ok && found.value.Kind != source.Null {
		return found.value.At
	}
	return d.locateKey(p)
}

// nodeAt returns the value at p in the document, including free-form data, or nil if there is none.
func (d *decoder) nodeAt(p *source.Path) *source.Node {
	if found, ok := d.places[p.String()]; ok {
		return found.value
	}
	if p == nil {
		return nil
	}
	around := d.nodeAt(p.Parent)
	switch {
	case around == nil:
	case p.Index >= 0 && p.Index < len(around.Items):
		return around.Items[p.Index]
	case p.Index < 0:
		for _, e := range around.Entries {
			if e.Key == p.Name {
				return e.Value
			}
		}
	}
	return nil
}

// locateFree returns the position of a value inside free-form data, or that of the closest enclosing place that has one.
func (d *decoder) locateFree(p *source.Path) source.Position {
	if n := d.nodeAt(p); n != nil && n.Kind != source.Null {
		return n.At
	}
	return d.locate(p)
}

// locateFreeKey returns the position of a key inside free-form data, or that of the closest enclosing key.
func (d *decoder) locateFreeKey(p *source.Path) source.Position {
	if around := d.nodeAt(p.Parent); around != nil {
		for _, e := range around.Entries {
			if e.Key == p.Name {
				return e.At
			}
		}
	}
	return d.locateKey(p)
}

// locateKey returns the position of the key of p, or that of the closest enclosing key.
func (d *decoder) locateKey(p *source.Path) source.Position {
	for {
		if found, ok := d.places[p.String()]; ok {
			return found.key
		}
		if p == nil {
			return source.Position{}
		}
		p = p.Parent
	}
}

// message decodes a mapping into a message, field by field.
func (d *decoder) message(n *source.Node, m protoreflect.Message, p *source.Path) {
	if n.Kind != source.Mapping {
		d.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a mapping", shortHint(m.Descriptor().Name(), n))
		return
	}
	fields := m.Descriptor().Fields()
	seen := map[protoreflect.FieldNumber]string{}
	for _, e := range n.Entries {
		field := fields.ByJSONName(e.Key)
		if field == nil {
			field = fields.ByName(protoreflect.Name(e.Key))
		}
		if field == nil && isExtension(e.Key, m.Descriptor()) {
			continue
		}
		if field == nil {
			d.unknownField(e, n, m.Descriptor(), p)
			continue
		}
		at := p.Field(field.JSONName())
		if before, twice := seen[field.Number()]; twice {
			d.Add(e.At, at, fmt.Sprintf("%s and %s are two spellings of one field", before, e.Key), "keep "+field.JSONName())
			continue
		}
		seen[field.Number()] = e.Key
		d.put(at, place{e.At, e.Value})
		if e.Value.Kind != source.Null || field.Name() == commandField {
			d.field(e.Value, m, field, at)
		}
	}
}

// extensionPrefix is the prefix of top-level keys that are reserved for the author, for example for anchors.
const extensionPrefix = "x-"

// isExtension reports whether a key of a message is reserved for the author.
func isExtension(key string, m protoreflect.MessageDescriptor) bool {
	return strings.HasPrefix(key, extensionPrefix) && m.FullName() == "switchyard.v1.Definition"
}

// shortHint returns a hint for a message that was written as a single value, or "".
func shortHint(message protoreflect.Name, n *source.Node) string {
	text, _ := n.ScalarText()
	switch {
	case text == "":
	case message == "RunConcurrency" && n.Kind == source.Number:
		return "write { maxRuns: " + text + " }"
	case message == "RetryPolicy" && n.Kind == source.Number:
		return "write { maxRetries: " + text + " }"
	case message == "RetryPolicy" && n.Kind == source.Boolean:
		return "write { retryable: " + text + " }"
	case message == "Semaphore" && n.Kind == source.Str:
		return "write { name: " + text + ", limit: 2 }, or mutex: " + text
	case message == "Cache" && n.Kind == source.Str:
		return "write { key: ... }, with a CEL expression"
	case message == "ScheduleDefinition" && n.Kind == source.Str:
		return "write { cron: " + source.Quote(text) + " }"
	case message == "InputDefinition":
		return "write { default: " + text + " }, or {} for an input without a default"
	case message == "Resources" && n.Kind == source.Number:
		return "write { cores: " + text + " }"
	case message == "Constraints" && n.Kind == source.Str:
		return "write { nodeLabels: [" + text + "] }, or { targetNode: " + text + " }"
	}
	return ""
}

// writtenType returns the type in the document of the task at p, its own or the default one, or "".
func (d *decoder) writtenType(p *source.Path) string {
	for _, at := range []*source.Path{p.Key("type"), d.base.Field("defaults").Key("type")} {
		if n := d.nodeAt(at); n != nil && n.Kind == source.Str {
			return n.Text
		}
	}
	return ""
}

// specHint returns a hint for a spec that is not a mapping, given the type of its task, or "".
func specHint(taskType string, n *source.Node) string {
	text, scalar := n.ScalarText()
	shown := source.Quote(text)
	if n.Kind == source.Sequence {
		shown = "[PROGRAM, ARGUMENT]"
	}
	t, known := v1.FindTaskType(taskType)
	// Only a command may be a list.
	if known && (scalar || n.Kind == source.Sequence && taskType == v1.TypeShell) {
		return "write { " + t.MainField + ": " + shown + " }"
	}
	return ""
}

func (d *decoder) put(p *source.Path, at place) {
	if d.places != nil {
		d.places[p.String()] = at
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
	// commandField and entrypointField are values in the model; only some kinds of them can be executed.
	commandField    = protoreflect.Name("command")
	entrypointField = protoreflect.Name("entrypoint")
)

func isTaskType(field protoreflect.FieldDescriptor) bool {
	return field.FullName() == typeField || field.FullName() == defaultTypeField
}

func (d *decoder) field(n *source.Node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *source.Path) {
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

func (d *decoder) mapField(n *source.Node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *source.Path) {
	if n.Kind != source.Mapping && field.Name() == secretEnvField {
		d.AddHidden(n.At, p, p.Local()+" must be a mapping of variables to references", secretref.Forms)
		d.Settle(p)
		return
	}
	if n.Kind != source.Mapping {
		hint := ""
		if n.Kind == source.Sequence {
			hint = "write NAME: VALUE, without dashes"
		}
		d.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a mapping", hint)
		return
	}
	if len(n.Entries) == 0 {
		return
	}
	entries := m.Mutable(field).Map()
	for _, e := range n.Entries {
		at := p.Key(e.Key)
		d.put(at, place{e.At, e.Value})
		value, ok := d.value(e.Value, entries.NewValue(), field.MapValue(), at)
		if ok || field.MapValue().Message() != nil {
			// A task that cannot be decoded is kept, so that tasks that depend on it are not reported.
			entries.Set(protoreflect.ValueOfString(e.Key).MapKey(), value)
		}
	}
}

// listField decodes a list. It accepts a single scalar as a list of one, because people write `dependsOn: build`.
func (d *decoder) listField(n *source.Node, m protoreflect.Message, field protoreflect.FieldDescriptor, p *source.Path) {
	items := n.Items
	if n.Kind != source.Sequence {
		if _, scalar := n.ScalarText(); !scalar || field.Message() != nil {
			d.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a list", "")
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
		d.put(at, place{item.At, item})
		value, ok := d.value(item, list.NewElement(), field, at)
		if !ok && field.Message() == nil {
			value = list.NewElement() // keeps the indices of the following items right
		}
		list.Append(value)
	}
}

// value decodes a single value. empty is a new value of its kind, which value fills if it is a message. ok is false if value
// has reported a problem.
func (d *decoder) value(n *source.Node, empty protoreflect.Value, field protoreflect.FieldDescriptor, p *source.Path) (protoreflect.Value, bool) {
	wrong := func(want, hint string) (protoreflect.Value, bool) {
		if field.Parent().Name() == secretEnvEntry {
			d.AddHidden(n.At, p, p.Local()+" must be a reference to a secret", secretref.Forms)
			d.Settle(p)
			return empty, false
		}
		d.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be "+want, hint)
		return empty, false
	}
	switch field.Kind() {
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case structName:
			if field.FullName() == specField {
				// Its content depends on the type, which may come later.
				if n.Kind != source.Mapping {
					return wrong("a mapping", specHint(d.writtenType(p.Parent), n))
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
		if text, ok := n.ScalarText(); ok {
			return protoreflect.ValueOfString(text), true
		}
		if n.Kind == source.Null {
			return wrong("a string", `write "" for an empty one`)
		}
		return wrong("a string", "")
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
			return wrong(fmt.Sprintf("between %d and %d", math.MinInt32, math.MaxInt32), "")
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

// freeStruct decodes a mapping of free-form data.
func (d *decoder) freeStruct(n *source.Node, p *source.Path) (*structpb.Struct, bool) {
	if n.Kind != source.Mapping {
		d.Fail(n.At, p, p.Local()+" is "+n.String()+"; it must be a mapping", "")
		return nil, false
	}
	v, ok := d.freeValue(n, p)
	return v.GetStructValue(), ok
}

// maxExact is the limit below which integers are exact as doubles, which JSON numbers are. From here on, two integers share one
// double.
const maxExact = 1 << 53

// freeValue decodes free-form data. It reports an integer that a double cannot hold, because the value would change.
func (d *decoder) freeValue(n *source.Node, p *source.Path) (*structpb.Value, bool) {
	switch n.Kind {
	case source.Boolean:
		return structpb.NewBoolValue(n.Truth), true
	case source.Number:
		switch {
		case math.IsInf(n.Value, 0) || math.IsNaN(n.Value):
			d.Fail(n.At, p, n.Text+" is out of the range of numbers", "write it as a string, in quotes")
			return structpb.NewNullValue(), false
		case n.Whole && n.Style != source.FromMessage && math.Abs(n.Value) >= maxExact:
			d.Fail(n.At, p, n.Text+" cannot be kept exactly: integers must be below 2^53", "write it as a string, in quotes")
			return structpb.NewNullValue(), false
		}
		return structpb.NewNumberValue(n.Value), true
	case source.Str:
		return structpb.NewStringValue(n.Text), true
	case source.Sequence:
		list, ok := &structpb.ListValue{}, true
		for i, item := range n.Items {
			v, good := d.freeValue(item, p.Item(i))
			list.Values = append(list.Values, v)
			ok = ok && good
		}
		return structpb.NewListValue(list), ok
	case source.Mapping:
		s, ok := &structpb.Struct{Fields: map[string]*structpb.Value{}}, true
		for _, e := range n.Entries {
			v, good := d.freeValue(e.Value, p.Key(e.Key))
			s.Fields[e.Key] = v
			ok = ok && good
		}
		return structpb.NewStructValue(s), ok
	}
	return structpb.NewNullValue(), true
}
