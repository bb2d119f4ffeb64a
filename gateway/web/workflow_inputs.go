package web

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

const (
	// inputPrefix is the prefix of the names of input fields.
	inputPrefix = "input."
	// documentField is the form field of an input without declared types.
	documentField = "input-document"
	// maxShownDefault bounds the length of a default that is shown beside its field, in bytes.
	maxShownDefault = 40
)

// inputForm is the form for the input of a run.
type inputForm struct {
	Fields []inputField
	// IsFree marks a workflow without declared inputs, whose input is typed as a document.
	IsFree bool
	Free   string
	// Notes are problems that do not belong to a field.
	Notes []lineNote
	// Failed is why the form was refused, or "".
	Failed  string
	Buttons []button
}

// inputField is the form field of an input.
type inputField struct {
	Name, Type, Description string
	// Kind is text, number, checkbox, select or area.
	Kind      string
	Required  bool
	Value     string
	IsChecked bool
	Options   []inputOption
	// HasDefault is set if a missing input has a default. Default is its text if the text is short.
	HasDefault bool
	Default    string
	Notes      []lineNote
}

// ID returns the id of the field's element and the prefix of the ids of its texts.
func (f inputField) ID() string { return "input-" + f.Name }

// Field returns the name of the form field.
func (f inputField) Field() string { return inputPrefix + f.Name }

// inputOption is an option of a select element.
type inputOption struct {
	Value, Text string
	IsSelected  bool
}

// newInputForm returns the form of a workflow, filled in with the defaults.
func newInputForm(def *v1.Definition) inputForm {
	f := inputForm{IsFree: len(def.GetInputs()) == 0}
	for _, name := range slices.Sorted(maps.Keys(def.GetInputs())) {
		f.Fields = append(f.Fields, newInputField(name, def.GetInputs()[name]))
	}
	slices.SortStableFunc(f.Fields, func(a, b inputField) int { return requiredFirst(a) - requiredFirst(b) })
	return f
}

func requiredFirst(f inputField) int {
	if f.Required {
		return 0
	}
	return 1
}

func newInputField(name string, in *v1.InputDefinition) inputField {
	f := inputField{Name: name, Type: in.GetType(), Description: in.GetDescription(), Required: in.GetRequired(), Kind: "text"}
	if f.Type == "" {
		f.Type = "string"
	}
	f.HasDefault = in.GetDefault() != nil
	f.Value = fieldText(in.GetDefault(), f.Type)
	switch {
	case len(in.GetEnum()) > 0:
		f.Kind = "select"
		for _, value := range in.GetEnum() {
			f.Options = append(f.Options, inputOption{Value: fieldText(value, f.Type), Text: fieldText(value, f.Type)})
		}
	case f.Type == "boolean" && f.HasDefault:
		f.Kind, f.IsChecked = "checkbox", in.GetDefault().GetBoolValue()
	case f.Type == "boolean":
		f.Kind, f.Options = "select", []inputOption{{Value: "true", Text: "true"}, {Value: "false", Text: "false"}}
	case f.Type == "number", f.Type == "integer":
		f.Kind = "number"
	case f.Type == "list", f.Type == "object", strings.Contains(f.Value, "\n"):
		f.Kind = "area"
	}
	if f.Kind == "select" && !f.HasDefault {
		f.Options = append([]inputOption{{Text: map[bool]string{true: "choose", false: "not given"}[f.Required]}}, f.Options...)
	}
	if f.Kind != "area" && f.Kind != "checkbox" && len(f.Value) <= maxShownDefault {
		f.Default = f.Value
	}
	f.selectOption()
	return f
}

// selectOption selects the option that equals the value.
func (f *inputField) selectOption() {
	for i := range f.Options {
		f.Options[i].IsSelected = f.Options[i].Value == f.Value
	}
}

// fieldText formats a value for a form field: strings as they are, everything else as JSON.
func fieldText(v *structpb.Value, kind string) string {
	if v == nil {
		return ""
	}
	if text, ok := v.GetKind().(*structpb.Value_StringValue); ok && kind == "string" {
		return text.StringValue
	}
	options := protojson.MarshalOptions{}
	if kind == "list" || kind == "object" {
		options = protojson.MarshalOptions{Multiline: true, Indent: "  "}
	}
	text, err := options.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// fill sets the fields to the submitted values.
func (f *inputForm) fill(values url.Values) {
	text := func(name string) string { return strings.ReplaceAll(values.Get(name), "\r\n", "\n") }
	f.Free = text(documentField)
	for i := range f.Fields {
		field := &f.Fields[i]
		field.Value, field.IsChecked = text(field.Field()), values.Get(field.Field()) != ""
		field.selectOption()
		if _, err := strconv.ParseFloat(field.Value, 64); field.Kind == "number" && field.Value != "" && err != nil {
			field.Kind = "text" // browsers drop an invalid number
		}
	}
}

// input parses the submitted input. The error is source.Problems.
func (f *inputForm) input(def *v1.Definition) (*structpb.Struct, error) {
	if f.IsFree {
		return definition.ParseInput(def, nil, []byte(f.Free))
	}
	var pairs []string
	for _, field := range f.Fields {
		switch isEmpty := strings.TrimSpace(field.Value) == ""; {
		case field.Kind == "checkbox":
			pairs = append(pairs, field.Name+"="+strconv.FormatBool(field.IsChecked))
		case field.Type == "string" && (field.Value != "" || field.HasDefault), !isEmpty:
			pairs = append(pairs, field.Name+"="+field.Value)
		}
	}
	return definition.ParseInput(def, pairs, nil)
}

// showError shows an error at the fields that it names, or above the form. failed says what has not happened.
func (f *inputForm) showError(err error, failed string) {
	if err == nil {
		return
	}
	for _, n := range notesOf(problemsOf(err), nil) {
		at := slices.IndexFunc(f.Fields, func(field inputField) bool { return isOfInput(n.Problem, field.Name) })
		if at >= 0 {
			f.Fields[at].Notes = append(f.Fields[at].Notes, n)
		} else {
			f.Notes = append(f.Notes, n)
		}
	}
	f.Failed = failed + "."
	if rest := len(f.Notes); rest == 0 {
		f.Failed = failed + "; see the problems at the inputs."
	}
}

// isOfInput reports whether a problem concerns a given input.
func isOfInput(p *v1.Problem, name string) bool {
	rest, ok := strings.CutPrefix(p.GetPath(), inputPrefix+name)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// isOfInputs reports whether a problem concerns the input of a run rather than the definition.
func isOfInputs(p *v1.Problem) bool {
	return p.GetPath() == "input" || strings.HasPrefix(p.GetPath(), inputPrefix)
}

// aboutDefinition returns the problems that concern the definition.
func aboutDefinition(problems source.Problems) source.Problems {
	return slices.DeleteFunc(slices.Clone(problems), isOfInputs)
}
