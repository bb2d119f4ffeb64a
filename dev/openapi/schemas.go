package main

import (
	"regexp"
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// addWellKnown replaces the schemas of google.protobuf by the JSON forms that the gateway reads and prints.
func addWellKnown(schemas object) {
	schemas["google.protobuf.Duration"] = object{
		"type":        "string",
		"pattern":     `^-?(0|[1-9][0-9]{0,11})(\.[0-9]{1,9})?s$`,
		"description": "A time span in seconds, with an s.",
		"examples":    []any{"90s", "0.250s"},
	}
	schemas["google.protobuf.Timestamp"] = object{
		"type":        "string",
		"format":      "date-time",
		"description": "A time as RFC 3339 has it. Answers are in UTC.",
		"examples":    []any{"2026-01-15T01:30:15.010Z"},
	}
	schemas["google.protobuf.Struct"] = object{
		"type":                 "object",
		"additionalProperties": object{"$ref": schemaPrefix + "google.protobuf.Value"},
		"description":          "Any JSON object.",
	}
	schemas["google.protobuf.Value"] = object{"description": "Any JSON value."}
}

// constraintLine matches the plugin's text about a protovalidate rule that it cannot express otherwise.
var constraintLine = regexp.MustCompile(`\n[a-z_0-9]+\.[a-z_]+ = [^\n]*`)

// correctSchema corrects one schema. It may also be called with any other object of the document.
func correctSchema(o object) {
	if o["additionalProperties"] == false && (o["allOf"] != nil || o["oneOf"] != nil) {
		flattenOneofs(o)
	}
	if text, ok := o["description"].(string); ok {
		text = constraintLine.ReplaceAllString(text, "")
		o["description"] = strings.TrimSpace(strings.ReplaceAll(text, "\n ", "\n"))
	}
	if schema, ok := o["schema"].(object); ok && o["in"] != nil {
		delete(schema, "description") // the parameter already has it
		name, _ := o["name"].(string)
		correctField(schema, name)
	}
	if properties, ok := o["properties"].(object); ok {
		for name, property := range properties {
			if schema, ok := property.(object); ok {
				correctField(schema, name)
			}
		}
	}
	switch o["format"] {
	case "byte":
		delete(o, "format")
		o["contentEncoding"] = "base64"
	case "date-time":
		clear(o)
		o["$ref"] = schemaPrefix + "google.protobuf.Timestamp"
	case "duration":
		clear(o)
		o["$ref"] = schemaPrefix + "google.protobuf.Duration"
	}
}

// correctField removes the proto name from the schema of a field, and allows "" if the field's pattern applies only to other
// values.
func correctField(schema object, name string) {
	delete(schema, "title") // the name in proto
	if pattern, ok := schema["pattern"].(string); ok && mayBeEmpty(name, pattern) {
		schema["pattern"] = "^$|" + pattern
	}
}

// mayBeEmpty reports whether the pattern of a field with this name applies only if the field is not empty.
func mayBeEmpty(name, pattern string) bool {
	found := false
	protoregistry.GlobalFiles.RangeFilesByPackage("switchyard.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			field := file.Messages().Get(i).Fields().ByJSONName(name)
			if field == nil {
				continue
			}
			rules, _ := proto.GetExtension(field.Options(), validate.E_Field).(*validate.FieldRules)
			if rules.GetString().GetPattern() == pattern && rules.GetIgnore() == validate.Ignore_IGNORE_IF_ZERO_VALUE {
				found = true
			}
		}
		return !found
	})
	return found
}

// flattenOneofs moves all fields of a message into its properties, and allows at most one field of each oneof. The
// plugin keeps the fields of a oneof apart, where additionalProperties forbids them.
func flattenOneofs(schema object) {
	properties, _ := schema["properties"].(object)
	if properties == nil {
		properties = object{}
	}
	var groups [][]any // the alternatives of each oneof
	collect := func(part object) {
		own, _ := part["properties"].(object)
		for name, property := range own {
			properties[name] = property
		}
		if alternatives, ok := part["oneOf"].([]any); ok {
			groups = append(groups, alternatives)
		}
	}
	collect(object{"oneOf": schema["oneOf"]})
	parts, _ := schema["allOf"].([]any)
	for _, part := range parts {
		if part, ok := part.(object); ok {
			collect(part)
		}
	}
	delete(schema, "allOf")
	delete(schema, "oneOf")
	schema["properties"] = properties
	title, _ := schema["title"].(string)
	var rules []any
	for _, alternatives := range groups {
		var one, first []any
		for _, alternative := range alternatives {
			alternative, _ := alternative.(object)
			own, _ := alternative["properties"].(object)
			for name, property := range own {
				properties[name] = property
			}
			one = append(one, object{"required": alternative["required"]})
			first = append(first, object{"required": alternative["required"]})
		}
		if len(one) > 0 {
			if !needsOneof(title, alternatives) {
				one = append(one, object{"not": object{"anyOf": first}})
			}
			rules = append(rules, object{"oneOf": one})
		}
	}
	switch len(rules) {
	case 0:
	case 1:
		schema["oneOf"] = rules[0].(object)["oneOf"]
	default:
		schema["allOf"] = rules
	}
}

// needsOneof reports whether a oneof of a message must be set. Its alternatives have the names of its fields as titles.
func needsOneof(message string, alternatives []any) bool {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("switchyard.v1." + message))
	described, ok := found.(protoreflect.MessageDescriptor)
	if err != nil || !ok {
		return false
	}
	return slices.ContainsFunc(alternatives, func(alternative any) bool {
		schema, _ := alternative.(object)
		names, _ := schema["required"].([]any)
		if len(names) != 1 {
			return false
		}
		name, _ := names[0].(string)
		field := described.Fields().ByJSONName(name)
		if field == nil || field.ContainingOneof() == nil {
			return false
		}
		rules, _ := proto.GetExtension(field.ContainingOneof().Options(), validate.E_Oneof).(*validate.OneofRules)
		return rules.GetRequired()
	})
}
