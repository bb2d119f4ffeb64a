package rpcerror

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/workflows/nearest"
)

// unknownFieldHint returns what was probably meant by a field of a body that its message does not have, or "" if the body has no
// such field.
func unknownFieldHint(name string, data []byte, message protoreflect.MessageDescriptor) string {
	parent := parentOf(name, data, message)
	if parent == nil {
		return ""
	}
	var names, longer []string
	for i := range parent.Fields().Len() {
		known := parent.Fields().Get(i).JSONName()
		names = append(names, known)
		if strings.HasPrefix(nearest.Fold(known), nearest.Fold(name)) {
			longer = append(longer, known)
		}
	}
	if hint := nearest.DidYouMean(name, names); hint != "" {
		return hint
	}
	if len(longer) == 1 {
		return "did you mean " + longer[0] + "?"
	}
	if home := homeOf(name, message); home != "" {
		return "it belongs in " + home
	}
	return "there are " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// parentOf returns the message that an object with an unknown field should be, or nil if no object has such a field. Fields are
// visited in the order of their names.
func parentOf(unknown string, data []byte, message protoreflect.MessageDescriptor) protoreflect.MessageDescriptor {
	object := map[string]json.RawMessage{}
	if isFree(message) || json.Unmarshal(data, &object) != nil {
		return nil
	}
	if _, there := object[unknown]; there && FieldOf(message.Fields(), unknown) == nil {
		return message
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field := FieldOf(message.Fields(), name)
		if field == nil {
			continue
		}
		var values []json.RawMessage
		switch {
		case field.IsMap() && field.MapValue().Message() != nil:
			entries := map[string]json.RawMessage{}
			_ = json.Unmarshal(object[name], &entries) // protojson reports a fault
			field = field.MapValue()
			for _, key := range slices.Sorted(maps.Keys(entries)) {
				values = append(values, entries[key])
			}
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			_ = json.Unmarshal(object[name], &values)
		default:
			values = []json.RawMessage{object[name]}
		}
		for _, value := range values {
			if parent := parentOf(unknown, value, field.Message()); parent != nil {
				return parent
			}
		}
	}
	return nil
}

// homeOf returns the path of the field whose message has a field of a name, or "" if no message below has it. Of several paths, the
// shortest counts.
func homeOf(name string, message protoreflect.MessageDescriptor) string {
	type place struct {
		message protoreflect.MessageDescriptor
		path    string
	}
	seen := map[protoreflect.FullName]bool{}
	for queue := []place{{message, ""}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if seen[at.message.FullName()] || isFree(at.message) {
			continue
		}
		seen[at.message.FullName()] = true
		if at.path != "" && FieldOf(at.message.Fields(), name) != nil {
			return at.path
		}
		for i := range at.message.Fields().Len() {
			field := at.message.Fields().Get(i)
			below, path := field.Message(), strings.TrimPrefix(at.path+"."+field.JSONName(), ".")
			switch {
			case field.IsMap():
				below, path = field.MapValue().Message(), path+".NAME"
			case field.IsList():
				path += "[]"
			}
			if below != nil {
				queue = append(queue, place{below, path})
			}
		}
	}
	return ""
}

// isFree reports whether the JSON form of a message is not an object of its fields.
func isFree(message protoreflect.MessageDescriptor) bool {
	return strings.HasPrefix(string(message.FullName()), "google.protobuf.")
}

// FieldOf returns the field with a JSON or proto name, or nil if the message has no such field.
func FieldOf(fields protoreflect.FieldDescriptors, name string) protoreflect.FieldDescriptor {
	if field := fields.ByJSONName(name); field != nil {
		return field
	}
	return fields.ByTextName(name)
}
