package definition

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/workflows/definition/source"
	"switchyard/workflows/interpreter"
	"switchyard/workflows/nearest"
	"switchyard/workflows/structs"
)

// modelRules applies the rules of the model to messages.
type modelRules struct{ *decoder }

// validate applies the rules of the model to a message at p.
func (r modelRules) validate(m proto.Message, p *source.Path) {
	err := protovalidate.Validate(m)
	invalid, ok := errors.AsType[*protovalidate.ValidationError](err)
	if !ok {
		if err != nil {
			r.Add(r.locate(p), p, "the rules of the model cannot be applied: "+err.Error(), "")
		}
		return
	}
	for _, violation := range invalid.Violations {
		if r.IsFull() {
			r.Dropped++
			continue
		}
		at, field := descend(m.ProtoReflect().Descriptor(), violation.Proto.GetField(), p)
		r.violation(violation, field, at)
	}
}

// descend resolves a field path of protovalidate and returns the path and the field at its end.
func descend(message protoreflect.MessageDescriptor, to *validate.FieldPath, p *source.Path) (*source.Path, protoreflect.FieldDescriptor) {
	var field protoreflect.FieldDescriptor
	for _, element := range to.GetElements() {
		field = message.Fields().ByName(protoreflect.Name(element.GetFieldName()))
		if field == nil {
			return p, nil
		}
		p = p.Field(field.JSONName())
		value := field
		if field.IsMap() {
			value = field.MapValue()
		}
		switch subscript := element.GetSubscript().(type) {
		case *validate.FieldPathElement_Index:
			p = p.Item(int(subscript.Index))
		case *validate.FieldPathElement_StringKey:
			p = p.Key(subscript.StringKey)
		}
		if value.Message() != nil {
			message = value.Message()
		}
	}
	return p, field
}

// violation reports a violated rule of the model in words.
func (r modelRules) violation(v *protovalidate.Violation, field protoreflect.FieldDescriptor, p *source.Path) {
	if field == nil {
		r.Add(r.locate(p), p, v.Proto.GetMessage(), "")
		return
	}
	if v.Proto.GetForKey() {
		r.badKey(p, field)
		return
	}
	rules, at, label := rulesOf(field), r.locate(p), p.Local()
	text := ""
	if field.Kind() == protoreflect.StringKind && v.FieldValue.IsValid() {
		text = v.FieldValue.String()
	}
	switch id := v.Proto.GetRuleId(); {
	case field.FullName() == "switchyard.v1.Definition.name":
		r.badWorkflowName(at, p, text)
	case id == "required", id == "string.min_len", text == "" && strings.HasPrefix(id, "string."):
		hint := ""
		if len(rules.in) > 0 {
			hint = "it must be " + rules.wants()
		}
		r.Add(at, p, label+" is missing", hint)
	case id == "string.in":
		hint := wordHint(text, field, rules.in)
		if isTaskType(field) {
			if shell := interpreter.ValueFor(nearest.Fold(text)); shell != "" {
				hint = "write type: shell, with spec: { shell: " + shell + " }"
			}
			r.Add(at, p, "unknown type "+source.Quote(text)+"; it must be "+rules.wants(), hint)
			return
		}
		r.Add(at, p, label+" is "+source.Quote(text)+"; it must be "+rules.wants(), hint)
	case field.FullName() == "switchyard.v1.Notification.to":
		r.Add(at, p, label+" is "+source.Quote(text)+", which is not the name of a target: at most 63 letters, digits, '.', '_' and '-', the first a letter or digit",
			"a definition names a target that `switchyard notifications put` has stored, and no URL")
	case field.FullName() == "switchyard.v1.ArtifactOut.name", field.FullName() == "switchyard.v1.TaskDefinition.workspace":
		r.Add(at, p, label+" is "+source.Quote(text)+", which is not a valid name: at most 63 letters, digits, '_' and '-', the first a letter or digit", "")
	case id == "string.pattern" && field.Parent().FullName() != "switchyard.v1.Definition":
		r.Add(at, p, label+" is "+source.Quote(text)+", which is not a valid name: at most 63 of a-z, 0-9, '.' and '-', the first and last a letter or digit",
			repaired(notInNode().ReplaceAllString(strings.ToLower(text), "-"), ".-"))
	case strings.HasPrefix(id, "int32.gte") && !field.HasPresence() && *rules.gte > 0 && v.FieldValue.Int() == 0 && !r.hasValue(p):
		r.Add(at, p, label+" is missing", "it must be "+rules.wants())
	case id == "repeated.min_items":
		hint := `write when the workflow starts, such as cron: "0 2 * * *"`
		if len(rules.in) > 0 {
			hint = "its items may be " + rules.wants()
		}
		r.Add(at, p, label+" is missing", hint)
	case id == "repeated.unique":
		r.Add(at, p, label+" has an item twice", "")
	case id == "repeated.max_items":
		r.Add(at, p, fmt.Sprintf("%s has %d items; it may have %d", label, v.FieldValue.List().Len(), rules.maxItems), "")
	case id == "string.max_len":
		r.Add(at, p, fmt.Sprintf("%s has %d characters; it must be %s", label, utf8.RuneCountInString(text), rules.wants()), "")
	case id == "map.min_pairs":
		r.Add(at, p, label+" is empty; a workflow needs at least one task", "")
	case rules.wants() != "":
		value := fmt.Sprint(v.FieldValue)
		if number, ok := v.FieldValue.Interface().(float64); ok {
			value = structs.Number(number)
		}
		r.Add(at, p, label+" is "+value+"; it must be "+rules.wants(), "")
	default:
		r.Add(at, p, label+": "+v.Proto.GetMessage(), "")
	}
}

// badKey reports a map key that the rule of its field does not allow.
func (r modelRules) badKey(p *source.Path, field protoreflect.FieldDescriptor) {
	at, name := r.locateKey(p), p.Name
	switch field.FullName() {
	case "switchyard.v1.Definition.tasks":
		r.Add(at, p, "task name "+source.Quote(name)+" is not allowed: at most 63 letters, digits, '-' and '_', the first a letter or digit",
			repaired(notInTask().ReplaceAllString(name, "-"), "-_"))
	case "switchyard.v1.Definition.inputs":
		r.Add(at, p, "input name "+source.Quote(name)+" is not allowed: at most 63 letters, digits and '_', the first not a digit", repaired(strings.TrimLeft(notInEnv().ReplaceAllString(name, "_"), "0123456789"), "_"))
	case "switchyard.v1.TaskDefinition.env", "switchyard.v1.TaskDefaults.env",
		"switchyard.v1.TaskDefinition.secret_env", "switchyard.v1.TaskDefaults.secret_env":
		fixed := notInEnv().ReplaceAllString(name, "_")
		if fixed != "" && '0' <= fixed[0] && fixed[0] <= '9' {
			fixed = "_" + fixed
		}
		hint := ""
		if strings.Trim(fixed, "_") != "" {
			hint = "did you mean " + fixed + "?"
		}
		r.Add(at, p, "environment variable "+source.Quote(name)+" is not allowed: letters, digits and '_', the first not a digit", hint)
	default:
		r.Add(at, p, "key "+source.Quote(name)+" is not allowed", "")
	}
}
