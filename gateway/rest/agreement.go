package rest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
)

// checkAgreement returns an error for a request that sets one field more than once in its path, query and body to
// different values.
func (e *endpoint) checkAgreement(r *http.Request, query url.Values, body []byte) error {
	fields := e.call.Input().Fields()
	variables := e.variables(r.URL.Path)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if field := rpcerror.FieldOf(fields, name); field != nil && variables[string(field.Name())] != "" {
			return rpcerror.Invalid("parameter %s is already in the path of %s; leave it out of the query", name, e.route.Path)
		}
	}
	in := map[string]json.RawMessage{}
	if e.route.Body == "*" {
		// A body that is not a JSON object is rejected when it is decoded.
		_ = json.Unmarshal(body, &in)
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		field := rpcerror.FieldOf(fields, name)
		if field == nil || string(in[name]) == "null" {
			continue
		}
		if value := variables[string(field.Name())]; value != "" && value != textOf(in[name]) {
			return rpcerror.Invalid("%s is %.80s in the body and %.80q in the path; leave it out of the body", name, in[name], value)
		}
		for _, other := range slices.Sorted(maps.Keys(query)) {
			if err := compatible(name, in[name], field, other, query.Get(other), rpcerror.FieldOf(fields, other)); err != nil {
				return err
			}
		}
	}
	return nil
}

// compatible returns an error if a body field and a parameter set one field to different values or are mutually exclusive.
func compatible(name string, value json.RawMessage, field protoreflect.FieldDescriptor, parameter, text string, other protoreflect.FieldDescriptor) error {
	switch {
	case other == nil:
	case other == field:
		if text != textOf(value) {
			return rpcerror.Invalid("%s is %.80s in the body and %.80q in the query; send only one of them", name, value, text)
		}
	case field.ContainingOneof() != nil && field.ContainingOneof() == other.ContainingOneof():
		return rpcerror.Invalid("the body has %s and the query has %s; send only one of them", name, parameter)
	}
	return nil
}

// textOf returns a JSON value in the form of a parameter: strings lose their quotes.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
