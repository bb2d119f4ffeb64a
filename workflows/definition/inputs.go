package definition

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

// maxEnum is the most values in the enum of an input.
const maxEnum = 1000

// maxApprovalInput bounds what an approver fills in, in bytes. It is a part of the state of the run.
const maxApprovalInput = 16 << 10

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
	all := inputRules{d}.input(def.GetInputs(), given, source.Root.Field("input"), false)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// ApprovalInput returns what an approver fills in: the given values, and the defaults of the other inputs of an approval. The error
// is as for Input.
func ApprovalInput(spec *v1.ApprovalSpec, given *structpb.Struct) (*structpb.Struct, error) {
	d, at := &decoder{Report: &source.Report{}}, source.Root.Field("input")
	all := inputRules{d}.input(spec.GetInputs(), given, at, false)
	if size := proto.Size(all); size > maxApprovalInput {
		d.Add(source.Position{}, at, fmt.Sprintf("the inputs of an approval have %d bytes; the maximum is %d", size, maxApprovalInput), "put large data where the tasks can fetch it")
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// inputRules checks the inputs that a definition declares, and the input that a run is given.
type inputRules struct{ *decoder }

// input checks values that are given for declared inputs, and adds the defaults. If templated is set, a value with a template is not
// known yet and is not checked.
func (r inputRules) input(inputs map[string]*v1.InputDefinition, given *structpb.Struct, at *source.Path, templated bool) *structpb.Struct {
	all := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	declared := slices.Sorted(maps.Keys(inputs))
	for _, name := range slices.Sorted(maps.Keys(given.GetFields())) {
		if inputs[name] == nil {
			r.unknownInput(name, declared, at.Key(name))
		}
	}
	for _, name := range declared {
		in, value := inputs[name], given.GetFields()[name]
		_, isNull := value.GetKind().(*structpb.Value_NullValue)
		p := at.Key(name)
		switch {
		case value.GetKind() != nil && !isNull:
			if !(templated && holdsTemplate(value)) && r.hasType(in, value, p) {
				r.isAllowed(in, value, p)
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
			r.Add(r.locate(p), p, "input "+name+" is missing", hint)
		}
	}
	return all
}

func (r inputRules) unknownInput(name string, declared []string, p *source.Path) {
	hint := "no input is declared"
	if len(declared) > 0 {
		hint = "known names: " + shortList(declared)
	}
	if r.Compared += len(declared); r.Compared <= maxInputsCompared {
		hint = cmp.Or(nearest.DidYouMean(name, declared), hint)
	}
	r.Add(r.locateKey(p), p, "there is no input "+source.Quote(name), hint)
}

// inputType returns the type of an input.
func inputType(in *v1.InputDefinition) string { return cmp.Or(in.GetType(), "string") }

// hasType reports whether a value has the type of an input, and adds a problem if it does not.
func (r inputRules) hasType(in *v1.InputDefinition, v *structpb.Value, p *source.Path) bool {
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
		r.Fail(r.locate(p), p, p.Local()+" is "+n.String()+"; it must be "+want, hint)
	}
	return good
}

// isAllowed checks that a value of the right type is among the allowed ones and matches the pattern.
func (r inputRules) isAllowed(in *v1.InputDefinition, v *structpb.Value, p *source.Path) {
	r.oneOf(in, v, p)
	if pattern, err := inputPattern(in); err == nil && !pattern.MatchString(v.GetStringValue()) {
		r.Fail(r.locate(p), p, fmt.Sprintf("%s is %s; it must match %s", p.Local(), source.ValueNode(v), in.GetPattern()), in.GetDescription())
	}
}

// errNoPattern is the error for an input without a pattern.
var errNoPattern = errors.New("no pattern")

// inputPattern returns the expression that the whole text of an input must match, errNoPattern if it has none, or why the pattern is
// not an expression.
func inputPattern(in *v1.InputDefinition) (*regexp.Regexp, error) {
	if in.GetPattern() == "" {
		return nil, errNoPattern
	}
	if _, err := regexp.Compile(in.GetPattern()); err != nil {
		return nil, err
	}
	return regexp.Compile("^(?:" + in.GetPattern() + ")$")
}

// pattern checks the pattern of an input, and reports whether the values of the input can be checked.
func (r inputRules) pattern(in *v1.InputDefinition, p *source.Path) bool {
	_, err := inputPattern(in)
	switch {
	case errors.Is(err, errNoPattern):
		return true
	case inputType(in) != "string":
		r.Add(r.locateKey(p), p, "a pattern is for texts, and the type of the input is "+inputType(in), "use enum, or leave pattern out")
	case err != nil:
		r.Add(r.locate(p), p, p.Local()+" is not a regular expression: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "), "the syntax is that of RE2")
	default:
		return true
	}
	return false
}

// oneOf checks that a value of the right type is among the allowed ones.
func (r inputRules) oneOf(in *v1.InputDefinition, v *structpb.Value, p *source.Path) {
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
	r.Fail(r.locate(p), p, fmt.Sprintf("%s is %s; it must be %s", p.Local(), source.ValueNode(v), nearest.Alternatives(words[:min(len(words), maxListed)])), nearest.DidYouMean(v.GetStringValue(), words))
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

// DescribeInput describes an input to people: type, default, allowed values and description.
func DescribeInput(in *v1.InputDefinition) string {
	text := cmp.Or(in.GetType(), "string")
	switch {
	case in.GetRequired():
		text += ", required"
	case in.GetDefault() != nil:
		text += ", default " + jsonText(in.GetDefault().AsInterface())
	}
	if len(in.GetEnum()) > 0 {
		var values []string
		for _, value := range in.GetEnum() {
			values = append(values, jsonText(value.AsInterface()))
		}
		text += ", one of " + strings.Join(values, ", ")
	}
	if in.GetPattern() != "" {
		text += ", matching " + in.GetPattern()
	}
	if in.GetDescription() != "" {
		text += ": " + in.GetDescription()
	}
	return text
}

func jsonText(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// declared checks declared inputs.
func (r inputRules) declared(inputs map[string]*v1.InputDefinition, p *source.Path) {
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		in, at := inputs[name], p.Key(name)
		byDefault, enum := at.Field("default"), at.Field("enum")
		if r.IsSettled(at.Field("type")) {
			continue
		}
		if len(in.GetEnum()) > maxEnum {
			r.Fail(r.locate(enum), enum, fmt.Sprintf("%s has %d values; it may have %d", enum, len(in.GetEnum()), maxEnum), "")
			continue
		}
		good := r.pattern(in, at.Field("pattern"))
		for i, value := range in.GetEnum() {
			good = r.hasType(in, value, enum.Item(i)) && good
		}
		if in.GetDefault() == nil {
			continue
		}
		if in.GetRequired() {
			r.Add(r.locateKey(byDefault), byDefault, "an input that has a default is never missing, so it cannot be required", "remove one of the two")
		}
		if r.hasType(in, in.GetDefault(), byDefault) && good {
			r.isAllowed(in, in.GetDefault(), byDefault)
		}
	}
}

// restoreTexts restores the text from the document for the default and the enum of a string input, where the text looks like
// another type: 1.10, or no. It warns of such texts inside lists and objects.
func (r inputRules) restoreTexts(inputs map[string]*v1.InputDefinition, p *source.Path) {
	for name, in := range inputs {
		at := p.Key(name)
		if n := r.nodeAt(at.Field("default")); in.GetDefault() != nil && n != nil {
			r.warnOfInput(in, n, at.Field("default"))
		}
		if inputType(in) != "string" || len(in.GetEnum()) > maxEnum {
			continue
		}
		r.restoreText(in.GetDefault(), at.Field("default"))
		for i, value := range in.GetEnum() {
			r.restoreText(value, at.Field("enum").Item(i))
		}
	}
}

func (r inputRules) restoreText(v *structpb.Value, p *source.Path) {
	if n := r.nodeAt(p); v != nil && n != nil {
		if text, ok := n.ScalarText(); ok {
			v.Kind = &structpb.Value_StringValue{StringValue: text}
		}
	}
}
