package definition

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/interpreter"
	"switchyard/workflows/secretref"
)

// describedModel is the model with its comments, which Go's generated code leaves out. dev/generate.sh writes it.
//
//go:embed descriptors.binpb
var describedModel []byte

// Schema returns a JSON Schema (draft 2020-12) of definitions, for editors. It is generated from the model: its shapes, rules
// and comments. The schema checks fields one by one; problems that need the whole document, such as cycles, are found only by
// Parse.
func Schema() []byte {
	b := &schemaBuilder{comments: comments(), defs: object{}}
	schema := b.message((&v1.Definition{}).ProtoReflect().Descriptor())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "Switchyard workflow definition"
	schema["$defs"] = b.defs
	// A task has a type of its own or the default one.
	typedTasks := object{"additionalProperties": object{"required": []any{"type"}}}
	schema["allOf"] = append(schema["allOf"].([]any), object{
		"if":   object{"not": object{"required": []any{"defaults"}, "properties": object{"defaults": object{"required": []any{"type"}}}}},
		"then": object{"properties": object{"tasks": typedTasks, "finally": typedTasks}},
	})
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic("definition: a schema of maps, lists and texts cannot be written: " + err.Error())
	}
	return append(data, '\n')
}

// object is a JSON object; encoding/json writes its keys in sorted order.
type object = map[string]any

// sources holds the spec fields of which at least one is required: those that name what a container or a machine is made of.
var sources = map[protoreflect.FullName][]protoreflect.Name{
	"switchyard.v1.ContainerSpec": {"image", "environment"},
	"switchyard.v1.VpsSpec":       {"image", "vm_image", "environment"},
}

type schemaBuilder struct {
	comments map[protoreflect.FullName]string
	defs     object
}

// ref returns a reference to the schema of a message, which it creates at its first use.
func (b *schemaBuilder) ref(m protoreflect.MessageDescriptor) object {
	name := string(m.Name())
	if _, done := b.defs[name]; !done {
		b.defs[name] = nil // the model is a tree, but a loop must not hang here
		b.defs[name] = b.message(m)
	}
	return object{"$ref": "#/$defs/" + name}
}

// message returns the schema of a message: either spelling of every field, but not both, and nothing else. The snake_case
// spellings are patterns, because editors offer everything in `properties`.
func (b *schemaBuilder) message(m protoreflect.MessageDescriptor) object {
	properties, patterns, all := object{}, object{}, []any{}
	var required []any
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		if isDeprecated(field) {
			continue
		}
		canonical, snake := field.JSONName(), string(field.Name())
		properties[canonical] = b.field(field)
		if snake != canonical {
			patterns["^"+snake+"$"] = object{"$ref": b.pointer(m) + "/properties/" + canonical}
			all = append(all, object{"not": object{"required": []any{canonical, snake}}})
		}
		if needed(field) {
			// Required fields have names of one word, so there is only one spelling.
			if snake == canonical {
				required = append(required, canonical)
			} else {
				all = append(all, object{"anyOf": []any{object{"required": []any{canonical}}, object{"required": []any{snake}}}})
			}
		}
	}
	if fields := sources[m.FullName()]; len(fields) > 0 {
		var either []any
		for _, field := range fields {
			for _, name := range slices.Compact([]string{m.Fields().ByName(field).JSONName(), string(field)}) {
				either = append(either, object{"required": []any{name}})
			}
		}
		all = append(all, object{"anyOf": either})
	}
	if m.FullName() == "switchyard.v1.TaskDefinition" {
		all = append(all, b.specs(m)...)
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if m.FullName() == "switchyard.v1.Definition" {
		patterns["^"+extensionPrefix] = object{}
	}
	if len(patterns) > 0 {
		schema["patternProperties"] = patterns
	}
	if text := b.comments[m.FullName()]; text != "" {
		schema["description"] = text
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	if len(all) > 0 {
		schema["allOf"] = all
	}
	return schema
}

// isDeprecated reports whether only programs of earlier versions send the field.
func isDeprecated(field protoreflect.FieldDescriptor) bool {
	return field.Options().(*descriptorpb.FieldOptions).GetDeprecated()
}

func (b *schemaBuilder) pointer(m protoreflect.MessageDescriptor) string {
	if m.FullName() == "switchyard.v1.Definition" {
		return "#"
	}
	return "#/$defs/" + string(m.Name())
}

// needed reports whether a message is invalid without the field.
func needed(field protoreflect.FieldDescriptor) bool {
	if field.FullName() == typeField {
		return false // it may be inherited from the defaults
	}
	rules := rulesOf(field)
	return rules.required || rules.minLen > 0 || rules.minPairs > 0 || rules.minItems > 0 || rules.gte != nil && *rules.gte > 0 && !field.HasPresence() ||
		(rules.pattern != "" || len(rules.in) > 0 && !field.IsList()) && !rules.optional
}

// specs returns the conditions that tie `spec` to `type`.
func (b *schemaBuilder) specs(task protoreflect.MessageDescriptor) []any {
	var all []any
	for _, taskType := range rulesOf(task.Fields().ByName("type")).in {
		m := newSpec(taskType).ProtoReflect().Descriptor()
		then := object{"properties": object{"spec": b.ref(m)}}
		if len(sources[m.FullName()]) > 0 {
			then["required"] = []any{"spec"}
		}
		for i := range m.Fields().Len() {
			if needed(m.Fields().Get(i)) {
				then["required"] = []any{"spec"}
			}
		}
		all = append(all, object{
			"if":   object{"properties": object{"type": object{"const": taskType}}, "required": []any{"type"}},
			"then": then,
		})
	}
	return all
}

func (b *schemaBuilder) field(field protoreflect.FieldDescriptor) object {
	rules := rulesOf(field)
	var schema object
	switch {
	case field.IsMap():
		schema = object{"type": "object", "additionalProperties": b.value(field.MapValue(), fieldRules{})}
		if field.MapValue().Kind() == protoreflect.StringKind {
			schema["additionalProperties"] = object{"type": scalarText}
		}
		if field.Name() == secretEnvField {
			schema["additionalProperties"] = object{"type": "string", "pattern": secretref.Pattern}
		}
		if rules.keyPattern != "" {
			schema["propertyNames"] = object{"pattern": rules.keyPattern}
		}
		if rules.minPairs > 0 {
			schema["minProperties"] = rules.minPairs
		}
	case field.IsList():
		item := b.value(field, fieldRules{})
		schema = object{"type": "array", "items": item}
		if field.Kind() == protoreflect.StringKind {
			item = object{"type": scalarText}
			if len(rules.in) > 0 {
				item = object{"enum": rules.in}
			}
			list := object{"type": "array", "items": item}
			if rules.minItems > 0 {
				list["minItems"] = rules.minItems
			}
			if rules.maxItems > 0 {
				list["maxItems"] = rules.maxItems
			}
			schema = object{"anyOf": []any{list, item}}
		}
	default:
		schema = b.value(field, rules)
	}
	if text := b.comments[field.FullName()]; text != "" {
		schema["description"] = text
	}
	return schema
}

// scalarText lists the JSON types accepted for a text, because YAML may read a text as another type.
var scalarText = []any{"string", "number", "boolean"}

func (b *schemaBuilder) value(field protoreflect.FieldDescriptor, rules fieldRules) object {
	switch field.Kind() {
	case protoreflect.StringKind:
		return stringSchema(field, rules)
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.Int32Kind:
		return numberSchema("integer", rules)
	case protoreflect.DoubleKind:
		return numberSchema("number", rules)
	}
	switch field.Message().FullName() {
	case structName:
		switch field.FullName() {
		case inlineField:
			return object{"$ref": "#"}
		case matrixField:
			return object{
				"type": "object", "minProperties": 1, "propertyNames": object{"pattern": axisName().String()},
				"additionalProperties": object{"type": "array", "minItems": 1},
			}
		}
		return object{"type": "object"}
	case valueName:
		return freeSchema(field)
	}
	return b.ref(field.Message())
}

// freeSchema returns the schema of a value that may be of several kinds.
func freeSchema(field protoreflect.FieldDescriptor) object {
	expression := object{"type": "string", "minLength": 1}
	switch {
	case field.Name() == commandField, field.Name() == entrypointField:
		return object{"anyOf": []any{
			object{"type": scalarText, "minLength": 1},
			object{"type": "array", "minItems": 1, "items": object{"type": scalarText}},
		}}
	case field.Name() == shellField:
		return object{"anyOf": []any{
			object{"enum": interpreter.Words()},
			object{"type": "array", "minItems": 1, "items": object{"type": scalarText}},
			object{"type": "string", "pattern": `\$\{\{`},
		}}
	case field.FullName() == "switchyard.v1.TaskDefinition.parallel":
		return object{"anyOf": []any{object{"type": "integer", "minimum": 0, "maximum": MaxInstances}, expression}}
	case field.FullName() == "switchyard.v1.TaskDefinition.foreach":
		return object{"anyOf": []any{object{"type": "array", "maxItems": MaxInstances}, expression}}
	case field.FullName() == "switchyard.v1.TaskDefinition.batch":
		return object{"anyOf": []any{object{"type": "integer", "minimum": 0, "maximum": MaxBatch}, object{"const": autoBatch}}}
	}
	return object{}
}

// durationPattern matches the durations of parseDuration.
const durationPattern = `^([0-9.]+d)?([0-9.]+(ns|us|µs|ms|s|m|h))*$|^0$`

func stringSchema(field protoreflect.FieldDescriptor, rules fieldRules) object {
	schema := object{"type": "string"}
	switch field.FullName() {
	case "switchyard.v1.TaskDefinition.timeout", "switchyard.v1.TaskDefinition.deadline", "switchyard.v1.TaskDefinition.expected_within", "switchyard.v1.Definition.expected_within", "switchyard.v1.TaskDefinition.heartbeat_timeout", "switchyard.v1.TaskDefaults.timeout", "switchyard.v1.TaskDefaults.heartbeat_timeout",
		"switchyard.v1.TaskDefaults.deadline", "switchyard.v1.Definition.deadline", "switchyard.v1.Cache.ttl", "switchyard.v1.ScheduleDefinition.jitter", "switchyard.v1.ScheduleDefinition.catch_up",
		"switchyard.v1.Stop.grace":
		schema["type"] = scalarText
		schema["pattern"] = durationPattern
	case "switchyard.v1.VpsSpec.idle_timeout", "switchyard.v1.SubagentSpec.stall_timeout", "switchyard.v1.ApprovalSpec.timeout", "switchyard.v1.ApprovalSpec.remind_after":
		schema["type"] = scalarText
		schema["pattern"] = durationPattern + `|\$\{\{` // specs have templates
	case "switchyard.v1.TaskDefinition.condition", "switchyard.v1.Cache.key", "switchyard.v1.RetryPolicy.when":
		schema["type"] = scalarText
	case "switchyard.v1.ScheduleDefinition.expected_by":
		schema["pattern"] = timeOfDay().String()
	case "switchyard.v1.Constraints.target_node":
		schema["pattern"] = targetNode().String()
	}
	if rules.pattern != "" {
		schema["pattern"] = rules.pattern
	}
	if rules.minLen > 0 {
		schema["minLength"] = rules.minLen
	}
	if rules.maxLen > 0 {
		schema["maxLength"] = rules.maxLen
	}
	if len(rules.in) > 0 {
		schema["enum"] = rules.in
	}
	return schema
}

func numberSchema(kind string, rules fieldRules) object {
	schema := object{"type": kind}
	if rules.gte != nil {
		schema["minimum"] = *rules.gte
	}
	if rules.lte != nil {
		schema["maximum"] = *rules.lte
	}
	return schema
}

// snakeName matches a name of a field in a comment. A word in quotation marks is a value.
var snakeName = lazyPattern(`"?\b[a-z0-9]+(_[a-z0-9]+)+\b`)

// comments returns the comments of messages and fields. They name fields as people write them.
func comments() map[protoreflect.FullName]string {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(describedModel, set); err != nil {
		panic("definition: the embedded model cannot be read: " + err.Error())
	}
	found, written := map[protoreflect.FullName]string{}, map[string]string{}
	for _, file := range set.GetFile() {
		described, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
		if err != nil {
			panic("definition: the embedded model is not the one that is linked in: " + err.Error())
		}
		locations := described.SourceLocations()
		add := func(d protoreflect.Descriptor) {
			text := locations.ByDescriptor(d).LeadingComments
			found[d.FullName()] = strings.Join(strings.Fields(text), " ")
		}
		for i := range described.Messages().Len() {
			message := described.Messages().Get(i)
			add(message)
			for k := range message.Fields().Len() {
				field := message.Fields().Get(k)
				add(field)
				written[string(field.Name())] = field.JSONName()
			}
		}
	}
	for name, text := range found {
		found[name] = snakeName().ReplaceAllStringFunc(text, func(word string) string { return cmp.Or(written[word], word) })
	}
	return found
}
