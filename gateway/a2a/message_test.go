package a2a

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

func messageOf(parts ...*a2a.Part) *a2a.Message { return a2a.NewMessage(a2a.MessageRoleUser, parts...) }

// TestInputMergesDataAndText builds inputs from messages with text, data, both and neither.
func TestInputMergesDataAndText(t *testing.T) {
	t.Parallel()
	text, data := a2a.NewTextPart, func(fields map[string]any) *a2a.Part { return a2a.NewDataPart(fields) }
	for name, test := range map[string]struct {
		parts  []*a2a.Part
		inputs []string // declared by the workflow
		want   map[string]any
		err    string
	}{
		"nothing":                      {nil, nil, map[string]any{}, ""},
		"text":                         {[]*a2a.Part{text("a"), text("b")}, nil, map[string]any{"text": "a\nb"}, ""},
		"empty text":                   {[]*a2a.Part{text("")}, nil, map[string]any{"text": ""}, ""},
		"data":                         {[]*a2a.Part{data(map[string]any{"n": 1.5}), data(map[string]any{"list": []any{"x", nil}})}, []string{"n", "list"}, map[string]any{"n": 1.5, "list": []any{"x", nil}}, ""},
		"both":                         {[]*a2a.Part{text("a"), data(map[string]any{"n": 1.5})}, []string{"n", "text"}, map[string]any{"n": 1.5, "text": "a"}, ""},
		"a remark":                     {[]*a2a.Part{text("please"), data(map[string]any{"n": 1.5})}, []string{"n"}, map[string]any{"n": 1.5}, ""},
		"the same twice":               {[]*a2a.Part{data(map[string]any{"n": 1.5}), data(map[string]any{"n": 2.5})}, nil, nil, `two parts of the message have data named "n"`},
		"text in both":                 {[]*a2a.Part{text("a"), data(map[string]any{"text": "b"})}, nil, nil, "remove one of them"},
		"text for one that takes none": {[]*a2a.Part{text("a")}, []string{"b", "a"}, nil, "skill x does not accept text; send a data part with its inputs: a, b"},
		"a file":                       {[]*a2a.Part{text("a"), a2a.NewRawPart([]byte("x"))}, nil, nil, "message part 1 is a file"},
		"no part":                      {[]*a2a.Part{nil}, nil, nil, "part 0 of the message is empty"},
	} {
		def := &v1.Definition{Name: "x"}
		for _, input := range test.inputs {
			if def.Inputs == nil {
				def.Inputs = map[string]*v1.InputDefinition{}
			}
			def.Inputs[input] = &v1.InputDefinition{}
		}
		got, err := inputOf(messageOf(test.parts...), def)
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %q", name, err, test.err)
			}
		case err != nil || !reflect.DeepEqual(got.AsMap(), test.want):
			t.Errorf("%s: %v, %v", name, got.AsMap(), err)
		}
	}
}

// TestDecisionIsReadFromTextOrData parses decisions of approvals.
func TestDecisionIsReadFromTextOrData(t *testing.T) {
	t.Parallel()
	approve := decision{approve: true}
	region := &structpb.Struct{Fields: map[string]*structpb.Value{"region": structpb.NewStringValue("eu")}}
	for name, test := range map[string]struct {
		parts []*a2a.Part
		want  decision
		err   string
	}{
		"a word":            {[]*a2a.Part{a2a.NewTextPart("approve")}, approve, ""},
		"a word and why":    {[]*a2a.Part{a2a.NewTextPart(" Approved: all tests pass ")}, decision{approve: true, reason: "all tests pass"}, ""},
		"no":                {[]*a2a.Part{a2a.NewTextPart("No.")}, decision{}, ""},
		"data":              {[]*a2a.Part{a2a.NewDataPart(map[string]any{"decision": "reject", "task": "gate", "reason": "too early"})}, decision{task: "gate", reason: "too early"}, ""},
		"data with text":    {[]*a2a.Part{a2a.NewDataPart(map[string]any{"decision": "approve"}), a2a.NewTextPart("looks good")}, decision{approve: true, reason: "looks good"}, ""},
		"data of a version": {[]*a2a.Part{a2a.NewDataPart(map[string]any{"decision": "approve", "definitionVersion": 2.0})}, decision{approve: true, version: 2}, ""},
		"data with inputs":  {[]*a2a.Part{a2a.NewDataPart(map[string]any{"decision": "approve", "input": map[string]any{"region": "eu"}})}, decision{approve: true, input: region}, ""},
		"a text as inputs":  {[]*a2a.Part{a2a.NewDataPart(map[string]any{"decision": "approve", "input": "eu"})}, decision{}, "`input` in the data of the message must be an object"},
		"half a version":    {[]*a2a.Part{a2a.NewDataPart(map[string]any{"decision": "approve", "definitionVersion": 1.5})}, decision{}, "must be an integer"},
		"nothing":           {nil, decision{}, `"" is not a decision`},
		"another word":      {[]*a2a.Part{a2a.NewTextPart("disapprove")}, decision{}, `"disapprove" is not a decision; a decision is text that begins with approve or reject`},
		"data without one":  {[]*a2a.Part{a2a.NewDataPart(map[string]any{"task": "gate"}), a2a.NewTextPart("ship")}, decision{}, `"ship" is not a decision`},
		"a misspelt field":  {[]*a2a.Part{a2a.NewDataPart(map[string]any{"decison": "approve"})}, decision{}, `has an unknown field "decison"`},
		"a field of a type": {[]*a2a.Part{a2a.NewDataPart(map[string]any{"decision": true})}, decision{}, "`decision` in the data of the message must be a string"},
	} {
		got, err := decisionOf(messageOf(test.parts...))
		switch {
		case test.err != "":
			if !errors.Is(err, a2a.ErrInvalidParams) || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %q", name, err, test.err)
			}
		case err != nil || !proto.Equal(got.input, test.want.input):
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		got.input, test.want.input = nil, nil
		if test.err == "" && got != test.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
