package definition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// MaxContextBytes is the largest context of a run, and therefore of a definition, in bytes of its protobuf encoding.
const MaxContextBytes = 256 << 10

// check applies every rule to a decoded definition. specs holds the specs of its tasks as messages of their types.
func (d *decoder) check(def *v1.Definition, specs map[string]proto.Message) {
	d.noTemplates(def.ProtoReflect(), d.base)
	d.validate(def, d.base)
	if size := proto.Size(def.GetContext()); size > MaxContextBytes {
		p := d.base.Field("context")
		d.Add(d.locate(p), p, fmt.Sprintf("context takes %d bytes; a run may have %d", size, MaxContextBytes), "keep large data in files, and their names in the context")
	}
	d.checkWorkflowName(def.GetName(), d.base.Field("name"))
	d.inputs(def)
	d.duration(def.GetDeadline(), d.base.Field("deadline"))
	d.concurrency(def.GetConcurrency(), d.base.Field("concurrency"))
	d.schedule(def, d.base.Field("schedule"))
	d.a2a(def, d.base.Field("a2a"))
	d.tasks(def, specs)
	g := d.dependencies(def)
	d.cycles(def, g)
	d.expressions(def, g)
}

// validate applies the rules of the model to a message at p.
func (d *decoder) validate(m proto.Message, p *source.Path) {
	err := protovalidate.Validate(m)
	invalid, ok := errors.AsType[*protovalidate.ValidationError](err)
	if !ok {
		if err != nil {
			d.Add(d.locate(p), p, "the rules of the model cannot be applied: "+err.Error(), "")
		}
		return
	}
	for _, violation := range invalid.Violations {
		if d.IsFull() {
			d.Dropped++
			continue
		}
		at, field := descend(m.ProtoReflect().Descriptor(), violation.Proto.GetField(), p)
		if !d.IsSettled(at) {
			d.violation(violation, field, at)
		}
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
func (d *decoder) violation(v *protovalidate.Violation, field protoreflect.FieldDescriptor, p *source.Path) {
	if field == nil {
		d.Add(d.locate(p), p, v.Proto.GetMessage(), "")
		return
	}
	if v.Proto.GetForKey() {
		d.badKey(p, field)
		return
	}
	rules, at, label := rulesOf(field), d.locate(p), p.Local()
	text := ""
	if field.Kind() == protoreflect.StringKind && v.FieldValue.IsValid() {
		text = v.FieldValue.String()
	}
	switch id := v.Proto.GetRuleId(); {
	case field.FullName() == "switchyard.v1.Definition.name":
		d.badWorkflowName(at, p, text)
	case id == "required", id == "string.min_len", text == "" && strings.HasPrefix(id, "string."):
		hint := ""
		if len(rules.in) > 0 {
			hint = "it must be " + rules.wants()
		}
		d.Add(at, p, label+" is missing", hint)
	case id == "string.in":
		hint := wordHint(text, field, rules.in)
		if isTaskType(field) {
			d.Add(at, p, "unknown type "+source.Quote(text)+"; it must be "+rules.wants(), hint)
			return
		}
		d.Add(at, p, label+" is "+source.Quote(text)+"; it must be "+rules.wants(), hint)
	case id == "string.pattern" && field.Parent().FullName() != "switchyard.v1.Definition":
		d.Add(at, p, label+" is "+source.Quote(text)+", which is no name: at most 63 of a-z, 0-9, '.' and '-', the first and last a letter or digit",
			repaired(notInNode().ReplaceAllString(strings.ToLower(text), "-"), ".-"))
	case strings.HasPrefix(id, "int32.gte") && !field.HasPresence() && *rules.gte > 0 && v.FieldValue.Int() == 0 && !d.said(p):
		d.Add(at, p, label+" is missing", "it must be "+rules.wants())
	case id == "repeated.min_items":
		d.Add(at, p, label+" is missing", `write when the workflow starts, such as cron: "0 2 * * *"`)
	case id == "repeated.max_items":
		d.Add(at, p, fmt.Sprintf("%s has %d items; it may have %d", label, v.FieldValue.List().Len(), rules.maxItems), "")
	case id == "string.max_len":
		d.Add(at, p, fmt.Sprintf("%s has %d characters; it must be %s", label, utf8.RuneCountInString(text), rules.wants()), "")
	case id == "map.min_pairs":
		d.Add(at, p, label+" is empty; a workflow needs at least one task", "")
	case rules.wants() != "":
		d.Add(at, p, fmt.Sprintf("%s is %v; it must be %s", label, v.FieldValue, rules.wants()), "")
	default:
		d.Add(at, p, label+": "+v.Proto.GetMessage(), "")
	}
}

// ownVariables is the prefix of the environment variables that Switchyard sets for a task.
const ownVariables = "SWITCHYARD_"

// settableVariables are the settings of the command switchyard that a task may set in its environment.
var settableVariables = []string{"SWITCHYARD_GATEWAY", "SWITCHYARD_TOKEN"}

// env checks environment variables.
func (d *decoder) env(env map[string]string, p *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := p.Key(name)
		d.settable(name, at)
		if strings.ContainsRune(env[name], 0) {
			d.nul(d.locate(at), at)
		}
	}
}

// settable reports a variable that Switchyard sets itself.
func (d *decoder) settable(name string, at *source.Path) {
	if strings.HasPrefix(name, ownVariables) && !slices.Contains(settableVariables, name) && !d.IsSettled(at) {
		d.Add(d.locateKey(at), at, "environment variable "+source.Quote(name)+" cannot be set: Switchyard sets all that begin with "+ownVariables,
			"choose another name; only "+strings.Join(settableVariables, " and ")+" may be set")
	}
}

// nul reports a text with a NUL character, which ends texts for programs.
func (d *decoder) nul(at source.Position, p *source.Path) {
	d.Add(at, p, p.Local()+" holds a NUL character, which no program can be given", "")
}

// heartbeatTimeout checks how long the node of an attempt may be silent.
func (d *decoder) heartbeatTimeout(text string, p *source.Path) {
	d.duration(text, p)
	if _, err := parseDuration(text); text == "" || err != nil || d.IsSettled(p) {
		return
	}
	if timeout := duration(text); timeout < MinHeartbeatTimeout || timeout > MaxHeartbeatTimeout {
		d.Add(d.locate(p), p, p.Local()+" is "+text+"; it must be 5s to 1h", "")
	}
}

// These are the bounds of a heartbeat time-out: nodes send heartbeats often enough for the smallest one, and a task whose node
// is lost waits no longer than the largest.
const (
	MinHeartbeatTimeout = 5 * time.Second
	MaxHeartbeatTimeout = time.Hour
)

// notBlank reports a text of only spaces where one is required. The model reports an empty text.
func (d *decoder) notBlank(text string, p *source.Path) {
	if text != "" && strings.TrimSpace(text) == "" && !d.IsSettled(p) {
		d.Add(d.locate(p), p, p.Local()+" is blank", "")
	}
}

func (d *decoder) duration(text string, p *source.Path) {
	d.durationOr(text, p, `"0" is no limit`)
}

// durationOr checks a duration. ofZero explains the meaning of "0".
func (d *decoder) durationOr(text string, p *source.Path, ofZero string) {
	if text == "" || d.IsSettled(p) {
		return
	}
	_, err := parseDuration(text)
	switch {
	case err == nil:
	case errors.Is(err, errNegative):
		d.Add(d.locate(p), p, p.Local()+" is "+text+"; it must not be negative", ofZero)
	default:
		hint := `write a duration such as "90s", "1h30m" or "2d"`
		if _, err := parseDuration(text + "s"); err == nil {
			hint = fmt.Sprintf("a unit is missing; did you mean %q?", text+"s")
		} else if meant := meantDuration(text); meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		d.Add(d.locate(p), p, p.Local()+" is "+source.Quote(text)+", which is no duration", hint)
	}
}
