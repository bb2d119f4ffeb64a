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

// firstSentence returns the first sentence of a comment, on one line, or "" if there is none.
func firstSentence(comment any) string {
	text, _ := comment.(string)
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
// schemas, so inline keeps only what names and types need; the gateway checks the rest. within lists the references being
// expanded: a recursive message becomes an arbitrary object.
func (d document) inline(s schema, within ...string) schema {
	if ref, ok := s["$ref"].(string); ok {
		if slices.Contains(within, ref) {
			return schema{"type": "object"}
		}
		within = append(slices.Clone(within), ref)
	}
	s = d.resolve(s)
	out := schema{"type": s["type"]}
	if types, ok := s["type"].([]any); ok && types[len(types)-1] == "null" {
		out["type"] = types[0]
	}
	if text := firstSentence(s["description"]); text != "" {
		out["description"] = text
	}
	if s["format"] == "date-time" || s["enum"] != nil {
		maps.Copy(out, schema{"format": s["format"], "enum": s["enum"]})
	}
	if properties := nested(s["properties"]); properties != nil {
		fields := schema{}
		for name, property := range properties {
			fields[name] = d.inline(nested(property), within...)
		}
		out["properties"], out["additionalProperties"] = fields, false
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if each := nested(s[key]); each != nil {
			if each = d.inline(each, within...); each["type"] != nil { // otherwise any JSON value
				out[key] = each
			}
		}
	}
	maps.DeleteFunc(out, func(_ string, value any) bool { return value == nil })
	return out
}

// input returns the schema of the arguments of a tool.
func (t *tool) input(d document) schema {
	properties := schema{}
	if t.call.method != nil {
		given := d.arguments(d.operationOf(t.call.method))
		fields := t.call.input.ProtoReflect().Descriptor().Fields()
		for _, name := range strings.Fields(t.takes) {
			properties[nameOf(fields.ByJSONName(name))] = d.inline(given[name])
		}
	}
	for _, name := range strings.Fields(t.adds) {
		properties[name] = nil
	}
	if t.isWriting() {
		properties[previewName] = nil
	}
	for name := range properties {
		if own := ownSchemas[name]; own != nil {
			properties[name] = maps.Clone(own)
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if needs := strings.Fields(t.needs); len(needs) > 0 {
		s["required"] = needs
		for _, name := range needs {
			if property := nested(properties[name]); property["type"] == "string" {
				property["minLength"] = 1
			}
		}
	}
	return s
}

// output returns the schema of the answers of a tool, whose fields have telling names, or nil if the tool composes its answers.
func (t *tool) output(d document) any {
	if t.do != nil {
		return nil
	}
	of := t.call.output.ProtoReflect().Descriptor()
	properties := schema{}
	for name, property := range nested(d.schemas[string(of.Name())]["properties"]) {
		if !slices.Contains(omitted[of.Name()], name) {
			properties[nameOf(of.Fields().ByJSONName(name))] = schema{"type": d.resolve(nested(property))["type"]}
		}
	}
	if len(properties) == 0 { // the document has the single field of such a message alone
		return nil
	}
	return schema{"type": "object", "properties": properties}
}
