package definition

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// maxEnum bounds the values that an input may be one of.
const maxEnum = 1000

// maxInputsCompared bounds how often the names of inputs are compared to find what was
// meant: what is given may hold many thousands.
const maxInputsCompared = 100_000

// Input returns the input of a run: what is given, and the defaults of what is
// not. A null counts as not given. Where the definition declares no inputs,
// anything may be given. The error is Problems, all of them, with paths such as
// "input.version".
func Input(def *v1.Definition, given *structpb.Struct) (*structpb.Struct, error) {
	if len(def.GetInputs()) == 0 {
		return given, nil
	}
	d := &decoder{report: &report{}}
	all := d.input(def, given, root.field("input"), false)
	if err := d.err(); err != nil {
		return nil, err
	}
	return all, nil
}

// input checks what is given to a run and adds the defaults. templated: what
// holds a template is not known yet, and taken as it is.
func (d *decoder) input(def *v1.Definition, given *structpb.Struct, at *path, templated bool) *structpb.Struct {
	all := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	declared := slices.Sorted(maps.Keys(def.GetInputs()))
	for _, name := range slices.Sorted(maps.Keys(given.GetFields())) {
		if def.GetInputs()[name] == nil {
			d.unknownInput(name, declared, at.key(name))
		}
	}
	for _, name := range declared {
		in, value := def.GetInputs()[name], given.GetFields()[name]
		p := at.key(name)
		switch {
		case value.GetKind() != nil && !isNull(value):
			if !(templated && holdsTemplate(value)) && d.inputValue(in, value, p) {
				d.oneOf(in, value, p)
			}
			all.Fields[name] = value
		case in.GetDefault() != nil:
			all.Fields[name] = in.GetDefault()
		case in.GetRequired():
			hint := "give it with --input " + name + "=VALUE"
			if at.parent != nil {
				hint = "add it to " + at.local()
			}
			if in.GetDescription() != "" {
				hint = in.GetDescription() + "; " + hint
			}
			d.add(d.locate(p), p, "input "+name+" is missing", hint)
		}
	}
	return all
}

func isNull(v *structpb.Value) bool {
	_, null := v.GetKind().(*structpb.Value_NullValue)
	return null
}

func (d *decoder) unknownInput(name string, declared []string, p *path) {
	hint := ""
	if d.compared += len(declared); d.compared <= maxInputsCompared {
		hint = didYouMean(name, declared)
	}
	if hint == "" {
		hint = "there are: " + shortList(declared)
	}
	d.add(d.locateKey(p), p, "there is no input "+quote(name), hint)
}

// inputType is the type of an input.
func inputType(in *v1.InputDefinition) string {
	if in.GetType() == "" {
		return "string"
	}
	return in.GetType()
}

// inputValue reports whether a value is of the type of an input, and reports it if not.
func (d *decoder) inputValue(in *v1.InputDefinition, v *structpb.Value, p *path) bool {
	n := valueNode(v)
	good, want, hint := false, "", ""
	switch inputType(in) {
	case "string":
		good, want = n.kind == str, "a string"
	case "number":
		good, want = n.kind == number, "a number"
	case "integer":
		good, want = n.kind == number && n.value == math.Trunc(n.value), "a whole number"
	case "boolean":
		good, want, hint = n.kind == boolean, "true or false", truthHint(n.text)
	case "list":
		good, want = n.kind == sequence, "a list"
	case "object":
		good, want = n.kind == mapping, "a mapping"
	default:
		return true // the type itself is at fault
	}
	if !good {
		d.fail(d.locateFree(p), p, p.local()+" is "+n.String()+"; it must be "+want, hint)
	}
	return good
}

// oneOf checks that a value of the right type is among those that are allowed.
func (d *decoder) oneOf(in *v1.InputDefinition, v *structpb.Value, p *path) {
	if len(in.GetEnum()) == 0 {
		return
	}
	var words []string
	for _, allowed := range in.GetEnum() {
		if proto.Equal(allowed, v) {
			return
		}
		words = append(words, plainText(allowed))
	}
	d.fail(d.locateFree(p), p, fmt.Sprintf("%s is %s; it must be %s", p.local(), valueNode(v), alternatives(words[:min(len(words), maxListed)])), didYouMean(v.GetStringValue(), words))
}

// plainText is a value of an enum, for people.
func plainText(v *structpb.Value) string {
	switch n := valueNode(v); n.kind {
	case sequence, mapping:
		return n.String()
	default:
		return n.text
	}
}

// inputs checks the inputs that a definition declares.
func (d *decoder) inputs(def *v1.Definition) {
	for _, name := range slices.Sorted(maps.Keys(def.GetInputs())) {
		in, at := def.GetInputs()[name], d.base.field("inputs").key(name)
		byDefault, enum := at.field("default"), at.field("enum")
		if d.settled(at.field("type")) {
			continue
		}
		if len(in.GetEnum()) > maxEnum {
			d.fail(d.locate(enum), enum, fmt.Sprintf("%s has %d values; it may have %d", enum, len(in.GetEnum()), maxEnum), "")
			continue
		}
		good := true
		for i, value := range in.GetEnum() {
			good = !d.settled(enum.item(i)) && d.inputValue(in, value, enum.item(i)) && good
		}
		if in.GetDefault() == nil || d.settled(byDefault) {
			continue
		}
		if in.GetRequired() {
			d.add(d.locateKey(byDefault), byDefault, "an input that has a default is never missing, so it cannot be required", "take one of the two away")
		}
		if d.inputValue(in, in.GetDefault(), byDefault) && good {
			d.oneOf(in, in.GetDefault(), byDefault)
		}
	}
}

// inputTexts makes the default and the enum of an input that is a text what the
// document says, where that looks like something else: 1.10, or no.
func (d *decoder) inputTexts(def *v1.Definition) {
	for name, in := range def.GetInputs() {
		if inputType(in) != "string" || len(in.GetEnum()) > maxEnum {
			continue
		}
		at := d.base.field("inputs").key(name)
		d.asText(in.GetDefault(), at.field("default"))
		for i, value := range in.GetEnum() {
			d.asText(value, at.field("enum").item(i))
		}
	}
}

func (d *decoder) asText(v *structpb.Value, p *path) {
	if n := d.nodeAt(p); v != nil && n != nil {
		if text, ok := n.scalarText(); ok {
			v.Kind = &structpb.Value_StringValue{StringValue: text}
		}
	}
}
