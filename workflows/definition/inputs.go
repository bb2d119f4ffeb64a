package definition

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

// maxEnum is the most values in the enum of an input.
const maxEnum = 1000

// maxInputsCompared limits how many pairs of input names are compared to find the one that was meant, because the given input
// may hold many thousands.
const maxInputsCompared = 100_000

// Input returns the input of a run: the given values, and the defaults of the others. A null counts as not given. If the
// definition declares no inputs, anything may be given. The error is Problems, which lists all of them with paths such as
// "input.version".
func Input(def *v1.Definition, given *structpb.Struct) (*structpb.Struct, error) {
	if len(def.GetInputs()) == 0 {
		return given, nil
	}
	d := &decoder{Report: &source.Report{}}
	all := d.input(def, given, source.Root.Field("input"), false)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// input checks the input given to a run and adds the defaults. If templated is set, a value with a template is not known yet
// and is not checked.
func (d *decoder) input(def *v1.Definition, given *structpb.Struct, at *source.Path, templated bool) *structpb.Struct {
	all := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	declared := slices.Sorted(maps.Keys(def.GetInputs()))
	for _, name := range slices.Sorted(maps.Keys(given.GetFields())) {
		if def.GetInputs()[name] == nil {
			d.unknownInput(name, declared, at.Key(name))
		}
	}
	for _, name := range declared {
		in, value := def.GetInputs()[name], given.GetFields()[name]
		p := at.Key(name)
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
			if at.Parent != nil {
				hint = "add it to " + at.Local()
			}
			if in.GetDescription() != "" {
				hint = in.GetDescription() + "; " + hint
			}
			d.Add(d.locate(p), p, "input "+name+" is missing", hint)
		}
	}
	return all
}

func isNull(v *structpb.Value) bool {
	_, null := v.GetKind().(*structpb.Value_NullValue)
	return null
}

func (d *decoder) unknownInput(name string, declared []string, p *source.Path) {
	hint := ""
	if d.Compared += len(declared); d.Compared <= maxInputsCompared {
		hint = nearest.DidYouMean(name, declared)
	}
	if hint == "" {
		hint = "there are: " + shortList(declared)
	}
	d.Add(d.locateFreeKey(p), p, "there is no input "+source.Quote(name), hint)
}

// inputType returns the type of an input.
func inputType(in *v1.InputDefinition) string {
	if in.GetType() == "" {
		return "string"
	}
	return in.GetType()
}

// inputValue reports whether a value has the type of an input, and adds a problem if it does not.
func (d *decoder) inputValue(in *v1.InputDefinition, v *structpb.Value, p *source.Path) bool {
	n := source.ValueNode(v)
	good, want, hint := false, "", ""
	switch inputType(in) {
	case "string":
		good, want = n.Kind == source.Str, "a string"
	case "number":
		good, want = n.Kind == source.Number, "a number"
	case "integer":
		good, want = n.Kind == source.Number && n.Value == math.Trunc(n.Value), "a whole number"
	case "boolean":
		good, want, hint = n.Kind == source.Boolean, "true or false", truthHint(n.Text)
	case "list":
		good, want = n.Kind == source.Sequence, "a list"
	case "object":
		good, want = n.Kind == source.Mapping, "a mapping"
	default:
		return true // the type itself is at fault
	}
	if !good {
		d.Fail(d.locateFree(p), p, p.Local()+" is "+n.String()+"; it must be "+want, hint)
	}
	return good
}

// oneOf checks that a value of the right type is among the allowed ones.
func (d *decoder) oneOf(in *v1.InputDefinition, v *structpb.Value, p *source.Path) {
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
	d.Fail(d.locateFree(p), p, fmt.Sprintf("%s is %s; it must be %s", p.Local(), source.ValueNode(v), alternatives(words[:min(len(words), maxListed)])), nearest.DidYouMean(v.GetStringValue(), words))
}

// plainText formats a value of an enum for people.
func plainText(v *structpb.Value) string {
	switch n := source.ValueNode(v); n.Kind {
	case source.Sequence, source.Mapping:
		return n.String()
	default:
		return n.Text
	}
}

// inputs checks the inputs that a definition declares.
func (d *decoder) inputs(def *v1.Definition) {
	for _, name := range slices.Sorted(maps.Keys(def.GetInputs())) {
		in, at := def.GetInputs()[name], d.base.Field("inputs").Key(name)
		byDefault, enum := at.Field("default"), at.Field("enum")
		if d.IsSettled(at.Field("type")) {
			continue
		}
		if len(in.GetEnum()) > maxEnum {
			d.Fail(d.locate(enum), enum, fmt.Sprintf("%s has %d values; it may have %d", enum, len(in.GetEnum()), maxEnum), "")
			continue
		}
		good := true
		for i, value := range in.GetEnum() {
			good = !d.IsSettled(enum.Item(i)) && d.inputValue(in, value, enum.Item(i)) && good
		}
		if in.GetDefault() == nil || d.IsSettled(byDefault) {
			continue
		}
		if in.GetRequired() {
			d.Add(d.locateKey(byDefault), byDefault, "an input that has a default is never missing, so it cannot be required", "take one of the two away")
		}
		if d.inputValue(in, in.GetDefault(), byDefault) && good {
			d.oneOf(in, in.GetDefault(), byDefault)
		}
	}
}

// inputTexts restores the text from the document for the default and the enum of a string input, where the text looks like
// another type: 1.10, or no.
func (d *decoder) inputTexts(def *v1.Definition) {
	for name, in := range def.GetInputs() {
		if inputType(in) != "string" || len(in.GetEnum()) > maxEnum {
			continue
		}
		at := d.base.Field("inputs").Key(name)
		d.asText(in.GetDefault(), at.Field("default"))
		for i, value := range in.GetEnum() {
			d.asText(value, at.Field("enum").Item(i))
		}
	}
}

func (d *decoder) asText(v *structpb.Value, p *source.Path) {
	if n := d.nodeAt(p); v != nil && n != nil {
		if text, ok := n.ScalarText(); ok {
			v.Kind = &structpb.Value_StringValue{StringValue: text}
		}
	}
}
