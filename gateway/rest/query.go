package rest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/nearest"
)

// followParameter requests a stream on paths that have one. If it is false, the request is an ordinary call.
const followParameter = "follow"

// readQuery returns the parameters of a request. It returns an error for a parameter that the request message does not
// have or whose value is invalid.
func (e *endpoint) readQuery(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, rpcerror.Invalid("the query of the URL is malformed: %v", err)
	}
	if follow := query[followParameter]; len(follow) == 1 && rpcerror.FieldOf(e.call.Input().Fields(), followParameter) == nil {
		if asks, err := strconv.ParseBool(follow[0]); err == nil && !asks {
			query.Del(followParameter)
		}
	}
	for foreign, own := range foreignParameters[string(e.call.Input().Name())] {
		switch {
		case !query.Has(foreign):
		case query.Has(own):
			return nil, rpcerror.Invalid("%s and %s are two names of one parameter; send one of them", foreign, own)
		default:
			query[own] = query[foreign]
			query.Del(foreign)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		field, err := findField(e.call.Input(), name)
		if err != nil {
			return nil, err
		}
		if len(query[name]) > 1 && !field.IsList() {
			return nil, rpcerror.Invalid("parameter %s is given %d times; give it once", name, len(query[name]))
		}
		for _, value := range query[name] {
			if !utf8.ValidString(value) {
				return nil, rpcerror.Invalid("parameter %s is %.80q, which is not UTF-8", name, value)
			}
			if wanted := wantedKind(field, value); wanted != "" {
				return nil, rpcerror.Invalid("parameter %s is %.80q, which is not a %s", name, value, wanted)
			}
		}
	}
	return query, nil
}

// findField returns the field that a parameter names: a field name, or several of them separated by dots.
func findField(message protoreflect.MessageDescriptor, name string) (protoreflect.FieldDescriptor, error) {
	var field protoreflect.FieldDescriptor
	for part := range strings.SplitSeq(name, ".") {
		if field != nil {
			if message = field.Message(); message == nil || field.IsMap() || field.IsList() {
				return nil, rpcerror.Invalid("unknown parameter %.80q: %s has no fields", name, field.JSONName())
			}
		}
		fields := message.Fields()
		if field = rpcerror.FieldOf(fields, part); field == nil {
			return nil, rpcerror.Invalid("unknown parameter %.80q; %s", name, hintOf(fields, part))
		}
	}
	return field, nil
}

// hintOf returns a suggestion for a mistyped field name, or the list of known names.
func hintOf(fields protoreflect.FieldDescriptors, name string) string {
	var known []string
	for i := range fields.Len() {
		known = append(known, fields.Get(i).JSONName())
	}
	if hint := nearest.DidYouMean(name, known); hint != "" {
		return hint
	}
	if len(known) == 0 {
		return "this call has no parameters"
	}
	slices.Sort(known)
	return "there are " + strings.Join(known, ", ")
}

// wantedKind returns a description of the values that a parameter accepts if value is not one of them, or "".
func wantedKind(field protoreflect.FieldDescriptor, value string) string {
	switch field.Kind() {
	case protoreflect.StringKind:
		if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return "UTF-8 text without NUL"
		}
	case protoreflect.BoolKind:
		if value != "true" && value != "false" {
			return "boolean; write true or false"
		}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		if _, err := strconv.ParseInt(value, 10, 32); err != nil {
			return "32-bit integer"
		}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return "64-bit integer"
		}
	case protoreflect.MessageKind:
		return wantedMessage(field, value)
	}
	return ""
}

// wantedMessage returns a description of the values that a message-typed parameter accepts if value is not one of them,
// or "".
func wantedMessage(field protoreflect.FieldDescriptor, value string) string {
	quoted := []byte(strconv.Quote(value))
	switch field.Message().FullName() {
	case "google.protobuf.Timestamp":
		if protojson.Unmarshal(quoted, &timestamppb.Timestamp{}) != nil {
			return "time; write it as 2026-01-31T12:00:00Z, with %2B where it has a +"
		}
	case "google.protobuf.Duration":
		if protojson.Unmarshal(quoted, &durationpb.Duration{}) != nil {
			return "duration; write it in seconds, as 90s"
		}
	default:
		return "query parameter; send it in a JSON body"
	}
	return ""
}
