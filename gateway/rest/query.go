package rest

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/nearest"
)

// validateQuery returns an error for parameters that the request of the call does not have, or that have no such value.
func (e *endpoint) validateQuery(query url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		field, err := findField(e.call.Input(), name)
		if err != nil {
			return err
		}
		if len(query[name]) > 1 && !field.IsList() {
			return rpcerror.Invalid("the parameter %s is given %d times, and takes one value", name, len(query[name]))
		}
		for _, value := range query[name] {
			if wanted := wantedKind(field, value); wanted != "" {
				return rpcerror.Invalid("the parameter %s is %.80q, which is no %s", name, value, wanted)
			}
		}
	}
	return nil
}

// findField returns the field that a parameter names: a name, or names with dots between them.
func findField(message protoreflect.MessageDescriptor, name string) (protoreflect.FieldDescriptor, error) {
	var field protoreflect.FieldDescriptor
	for part := range strings.SplitSeq(name, ".") {
		if field != nil {
			if message = field.Message(); message == nil || field.IsMap() || field.IsList() {
				return nil, rpcerror.Invalid("there is no parameter %.80q: %s has no fields", name, field.JSONName())
			}
		}
		fields := message.Fields()
		if field = fields.ByJSONName(part); field == nil {
			field = fields.ByTextName(part)
		}
		if field == nil {
			var known []string
			for i := range fields.Len() {
				known = append(known, fields.Get(i).JSONName())
			}
			hint := nearest.DidYouMean(part, known)
			if hint == "" {
				slices.Sort(known)
				hint = "there are " + strings.Join(known, ", ")
			}
			return nil, rpcerror.Invalid("there is no parameter %.80q; %s", name, hint)
		}
	}
	return field, nil
}

// wantedKind returns what a parameter takes if the value is not that, or "".
func wantedKind(field protoreflect.FieldDescriptor, value string) string {
	var err error
	switch field.Kind() {
	case protoreflect.BoolKind:
		if value != "true" && value != "false" {
			return "boolean; write true or false"
		}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		_, err = strconv.ParseInt(value, 10, 32)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		_, err = strconv.ParseInt(value, 10, 64)
	}
	if err != nil {
		return "integer"
	}
	return ""
}
