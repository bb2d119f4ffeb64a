package definition

import (
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// ParseInput reads the input of a run as people give it: a document in YAML or
// JSON, which may be empty, and pairs "key=value", which win. An input that is
// declared is read as its type asks: a string is the text as it stands, a list
// or an object is YAML or JSON. Any other is what JSON makes of it, or else a
// text. def may be nil. Nil stands for nothing given; whether all is there that
// must be says Input. The error is Problems.
func ParseInput(def *v1.Definition, pairs []string, file []byte) (*structpb.Struct, error) {
	r := &inputReader{decoder: &decoder{report: &report{file: "input"}, places: map[string]place{}}, def: def}
	if len(strings.TrimSpace(string(file))) > 0 {
		r.document(file)
	}
	r.file, r.text = "", nil // from here on there are no positions
	given := map[string]bool{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		p := root.field("input").key(name)
		switch {
		case !ok || name == "":
			r.add(position{}, root.field("input"), quote(pair)+" is no input", "write key=value")
		case given[name]:
			r.add(position{}, p, "input "+name+" is given twice", "")
		default:
			given[name] = true
			r.set(name, r.pair(r.def.GetInputs()[name], text, p))
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.values, nil
}

// inputReader collects an input.
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
	tree := r.read(file)
	if tree == nil {
		return
	}
	if tree.kind != mapping {
		r.add(tree.at, root.field("input"), "an input is a mapping of names to values; this is "+tree.String(), "")
		return
	}
	for _, e := range tree.entries {
		v, _ := r.freeValue(e.value, root.field("input").key(e.key))
		if in := r.def.GetInputs()[e.key]; in != nil && inputType(in) == "string" {
			if text, ok := e.value.scalarText(); ok {
				v = structpb.NewStringValue(text)
			}
		}
		r.set(e.key, v)
	}
}

// pair reads the value of one pair; in is nil when the input is not declared.
func (r *inputReader) pair(in *v1.InputDefinition, text string, p *path) *structpb.Value {
	switch {
	case in == nil:
		return guess(text)
	case inputType(in) == "string":
		return structpb.NewStringValue(text)
	}
	inner := &decoder{report: &report{file: "input.yaml"}} // YAML, of which JSON is a part
	n := inner.read([]byte(text))
	var v *structpb.Value
	if n != nil {
		v, _ = inner.freeValue(n, p)
	}
	if len(inner.kept) > 0 {
		r.add(position{}, p, p.String()+" is "+quote(text)+", which cannot be read: "+inner.kept[0].GetMessage(), "")
		return v
	}
	r.inputValue(in, v, p)
	return v
}

// guess is what a text stands for when nobody says: JSON, where it is that and
// no number of it would be rounded, because ids must not be; else a text.
func guess(text string) *structpb.Value {
	v := &structpb.Value{}
	if !json.Valid([]byte(text)) || !exact(text) || v.UnmarshalJSON([]byte(text)) != nil {
		return structpb.NewStringValue(text)
	}
	return v
}

// exact says that no number in a JSON text is an integer that a float64, which
// numbers become, would change.
func exact(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return true
		}
		n, ok := token.(json.Number)
		if !ok || strings.ContainsAny(n.String(), ".eE") {
			continue
		}
		if f, err := n.Float64(); err != nil || strconv.FormatFloat(f, 'f', -1, 64) != n.String() && n.String() != "-0" {
			return false
		}
	}
}
