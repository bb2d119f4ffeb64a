package mcp

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/openapi"
)

// schema is a decoded JSON Schema.
type schema = map[string]any

// document holds the used parts of the OpenAPI document, which carries the comments of the proto files. It must not be
// modified.
type document struct {
	schemas    map[string]schema
	operations map[string]operation // by "Service_Method"
}

// operation is a call in the OpenAPI document.
type operation struct {
	OperationID string `json:"operationId"`
	Description string
	Summary     string
	Parameters  []struct {
		Name        string
		Description string
		Schema      schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
}

// api returns the OpenAPI document.
var api = sync.OnceValue(func() document {
	var read struct {
		Components struct{ Schemas map[string]schema }
		Paths      map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openapi.Document(), &read); err != nil {
		panic(err) // unreachable: the document is embedded
	}
	d := document{schemas: read.Components.Schemas, operations: map[string]operation{}}
	for _, methods := range read.Paths {
		for _, data := range methods {
			var o operation
			if err := json.Unmarshal(data, &o); err != nil || o.OperationID == "" {
				continue // not an operation, but the servers or parameters of the path
			}
			// A call with several paths has one numbered operation per path. The one with the most arguments has all of
			// them.
			name := strings.TrimRight(strings.TrimSuffix(o.OperationID, "_post"), "0123456789")
			if len(d.arguments(o)) >= len(d.arguments(d.operations[name])) {
				d.operations[name] = o
			}
		}
	}
	return d
})

// operationOf returns the operation of a call.
func (d document) operationOf(call protoreflect.MethodDescriptor) operation {
	return d.operations[string(call.Parent().Name())+"_"+string(call.Name())]
}

// comment returns the comment of a call on one line.
func (d document) comment(call protoreflect.MethodDescriptor) string {
	return oneLine(d.operationOf(call).Description)
}

// firstSentence returns the first sentence of a comment, on one line.
func firstSentence(text string) string {
	text = oneLine(text)
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		return text[:end[0]+1]
	}
	return text
}

// sentenceEnd matches the end of a sentence and the start of the next one; an ellipsis is none.
var sentenceEnd = regexp.MustCompile(`\. [A-Z]`)

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// arguments returns the schemas of the fields of a request by JSON name.
func (d document) arguments(o operation) map[string]schema {
	all := map[string]schema{}
	for _, p := range o.Parameters {
		s := maps.Clone(p.Schema)
		if s == nil {
			s = schema{}
		}
		s["description"] = p.Description
		all[p.Name] = s
	}
	for _, media := range o.RequestBody.Content {
		properties, _ := d.resolve(media.Schema)["properties"].(map[string]any)
		for name, s := range properties {
			all[name], _ = s.(map[string]any)
		}
	}
	return all
}

// resolve returns the schema that a reference points to, with the description of the reference. Any other schema is returned
// unchanged.
func (d document) resolve(s schema) schema {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s
	}
	resolved := maps.Clone(d.schemas[strings.TrimPrefix(ref, "#/components/schemas/")])
	if text, ok := s["description"]; ok && resolved != nil {
		resolved["description"] = text
	}
	return resolved
}

// inline returns a schema with its references expanded, and with the first sentence of each description. Every client reads all
// schemas, so inline leaves out titles, examples, and patterns, ranges and formats, which the gateway checks. within lists the
// references being expanded: a recursive message becomes an arbitrary object.
func (d document) inline(s schema, within ...string) schema {
	if ref, ok := s["$ref"].(string); ok {
		if slices.Contains(within, ref) {
			return schema{"type": "object"}
		}
		within = append(slices.Clone(within), ref)
	}
	out := schema{}
	for key, value := range d.resolve(s) {
		switch key {
		case "title", "examples", "pattern", "minimum", "maximum", "minLength", "maxLength":
			continue
		case "type":
			if types, ok := value.([]any); ok && len(types) == 2 && types[1] == "null" {
				value = types[0]
			}
		case "format":
			if value != "date-time" {
				continue
			}
		case "description":
			value = firstSentence(value.(string))
		case "enum":
			value = slices.DeleteFunc(slices.Clone(value.([]any)), func(v any) bool { return v == "" })
		case "properties":
			properties := map[string]any{}
			for name, property := range value.(map[string]any) {
				properties[name] = d.inline(property.(map[string]any), within...)
			}
			value = properties
		case "items", "additionalProperties":
			if nested, ok := value.(map[string]any); ok {
				if nested = d.inline(nested, within...); nested["type"] == nil {
					continue // any JSON value
				}
				value = nested
			}
		case "anyOf", "oneOf", "allOf":
			var each []any
			for _, nested := range value.([]any) {
				each = append(each, d.inline(nested.(map[string]any), within...))
			}
			value = each
		}
		out[key] = value
	}
	return out
}
