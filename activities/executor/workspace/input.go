package workspace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
)

// Input is the part of the file SWITCHYARD_INPUT that all instances of a task share. It is immutable.
type Input struct {
	// members holds the members of a JSON object, separated by commas.
	members []byte
	taken   map[string]bool
}

// NewInput merges everything that a task is given. Its own input is at the top level, beside the output of each parent
// under the parent's name: an object, or a list if the parent was fanned out. "ancestors" holds how the ancestors
// ended, "run" the outcome of the run for a task in `finally`, "context" the context of the run and "inputs" the input of the run; empty
// ones are left out. If names collide,
// the first in this order wins: the author of the task wrote its input, whereas the name of a parent can change.
func NewInput(own *structpb.Struct, parents map[string]*structpb.Value, ancestors, run map[string]any, context, inputs *structpb.Struct) (*Input, error) {
	values := make(map[string]any, len(own.GetFields())+len(parents)+4)
	if len(context.GetFields()) > 0 {
		values["context"] = context.AsMap()
	}
	if len(inputs.GetFields()) > 0 {
		values["inputs"] = inputs.AsMap()
	}
	if len(ancestors) > 0 {
		values["ancestors"] = ancestors
	}
	if len(run) > 0 {
		values["run"] = run
	}
	for name, output := range parents {
		values[name] = output.AsInterface()
	}
	for key, value := range own.GetFields() {
		values[key] = value.AsInterface()
	}
	in := &Input{taken: make(map[string]bool, len(values))}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		var err error
		if in.members, err = member(in.members, key, values[key]); err != nil {
			return nil, err
		}
		in.taken[key] = true
	}
	return in, nil
}

func member(members []byte, key string, value any) ([]byte, error) {
	name, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	text, err := plainJSON(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if len(members) > 0 {
		members = append(members, ',')
	}
	return append(append(append(members, name...), ':'), text...), nil
}

// instance returns the content of the file for one instance. It adds "item", "index" and "count" unless these names are
// taken.
func (in *Input) instance(r Request) ([]byte, error) {
	if in == nil {
		in = &Input{}
	}
	members := slices.Clip(in.members)
	if r.Count > 0 {
		for _, m := range []struct {
			key   string
			value any
			given bool
		}{{"item", r.Item.AsInterface(), r.Item != nil}, {"index", r.Index, true}, {"count", r.Count, true}} {
			if !m.given || in.taken[m.key] {
				continue
			}
			var err error
			if members, err = member(members, m.key, m.value); err != nil {
				return nil, err
			}
		}
	}
	text := make([]byte, 0, len(members)+3)
	return append(append(append(text, '{'), members...), "}\n"...), nil
}

// itemText returns an item as the value of SWITCHYARD_ITEM: a string as it is, any other value as JSON.
func itemText(item *structpb.Value) string {
	if text, ok := item.GetKind().(*structpb.Value_StringValue); ok {
		return text.StringValue
	}
	text, err := plainJSON(item.AsInterface())
	if err != nil {
		return "" // instance reports this error
	}
	return string(text)
}

// plainJSON returns JSON on one line and leaves <, > and & unescaped, because shells and grep read it too.
func plainJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
