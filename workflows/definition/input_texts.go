package definition

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/structs"
)

// ParseInput calls ParseInputChecked and drops the warnings.
func ParseInput(def *v1.Definition, pairs []string, file []byte) (*structpb.Struct, error) {
	input, _, err := ParseInputChecked(def, pairs, file)
	return input, err
}

// ParseInputChecked parses the input of a run as people give it: a document in YAML or JSON, which may be empty, and pairs
// "key=value", which take precedence. A declared input is read as its type demands: a string is the plain text, a list or an
// object is YAML or JSON. Any other input is read as JSON if it is valid JSON, otherwise as text. def may be nil. The result is
// nil if nothing was given; Input checks that required inputs are present. The warnings name values that tasks do not find as they
// are written. The error is Problems.
func ParseInputChecked(def *v1.Definition, pairs []string, file []byte) (*structpb.Struct, source.Problems, error) {
	r := &inputReader{decoder: &decoder{Report: &source.Report{File: "input"}, places: map[string]place{}}, def: def}
	if len(strings.TrimSpace(string(file))) > 0 {
		r.document(file)
	}
	r.File, r.Lines = "", nil // from here on there are no positions
	given := map[string]bool{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		p := source.Root.Field("input").Key(name)
		switch {
		case !ok || name == "":
			r.Add(source.Position{}, source.Root.Field("input"), source.Quote(pair)+" is not an input", "write key=value")
		case given[name]:
			r.Add(source.Position{}, p, "input "+name+" is given twice", "")
		default:
			given[name] = true
			r.set(name, r.pair(r.def.GetInputs()[name], text, p))
		}
	}
	if err := r.Err(); err != nil {
		return nil, nil, err
	}
	return r.values, r.Warnings(), nil
}

// inputReader collects the input of a run.
type inputReader struct {
	*decoder
	def    *v1.Definition
	values *structpb.Struct
}

func (r *inputReader) set(name string, v *structpb.Value) {
	if r.values == nil {
		r.values = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	r.values.Fields[name] = v
}

func (r *inputReader) document(file []byte) {
	tree := r.Read(file)
	if tree == nil {
		return
	}
	if tree.Kind != source.Mapping {
		r.Add(tree.At, source.Root.Field("input"), "an input is a mapping of names to values; this is "+tree.String(), "")
		return
	}
	for _, e := range tree.Entries {
		p, in := source.Root.Field("input").Key(e.Key), r.def.GetInputs()[e.Key]
		v, _ := r.freeValue(e.Value, p)
		if in != nil && inputType(in) == "string" {
			if text, ok := e.Value.ScalarText(); ok {
				v = structpb.NewStringValue(text)
			}
		}
		r.warnOfInput(in, e.Value, p)
		r.set(e.Key, v)
	}
}

// pair parses the value of one pair. in is nil if the input is not declared.
func (r *inputReader) pair(in *v1.InputDefinition, text string, p *source.Path) *structpb.Value {
	switch {
	case in == nil:
		return r.guess(text, p)
	case inputType(in) == "string":
		return structpb.NewStringValue(text)
	}
	inner := &decoder{Report: &source.Report{File: "input.yaml"}} // JSON is a subset of YAML
	n := inner.Read([]byte(text))
	var v *structpb.Value
	if n != nil {
		v, _ = inner.freeValue(n, p)
		r.warnOfPair(in, n, p)
	}
	if len(inner.Kept) > 0 {
		r.Add(source.Position{}, p, p.String()+" is "+source.Quote(text)+", which cannot be read: "+inner.Kept[0].GetMessage(), "")
		return v
	}
	inputRules{r.decoder}.hasType(in, v, p)
	return v
}

// guess returns the value of a text without a declared type: JSON if it is valid JSON that can be kept exactly, such as an ID of
// few digits, otherwise text.
func (r *inputReader) guess(text string, p *source.Path) *structpb.Value {
	v := &structpb.Value{}
	if structs.CheckJSON([]byte(text)) != nil || v.UnmarshalJSON([]byte(text)) != nil {
		return structpb.NewStringValue(text)
	}
	if n := (&source.Report{File: "input.json"}).Read([]byte(text)); n != nil {
		r.warnOfPair(nil, n, p)
	}
	return v
}

// warnOfPair warns of the texts in the value of a pair, which has no position in a document. in is nil if the input is not
// declared.
func (r *inputReader) warnOfPair(in *v1.InputDefinition, n *source.Node, p *source.Path) {
	inner := &decoder{Report: &source.Report{}}
	inner.warnOfInput(in, n, p)
	for _, w := range inner.Warned {
		w.Line, w.Column = 0, 0
		r.Warned = append(r.Warned, w)
	}
}
