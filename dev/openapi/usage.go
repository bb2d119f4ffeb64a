package main

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// narrowAnswers holds the messages that only answers have to what an answer has: always the fields without presence, zero
// values included; 64-bit integers as strings; and null nowhere. A message that a request may have, too, is left as it is.
func narrowAnswers(paths, schemas object) {
	asked := map[string]bool{}
	walk(paths, func(o object) {
		if body, ok := o["requestBody"]; ok {
			followReferences(body, schemas, asked)
		}
	})
	for name, value := range schemas {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("switchyard.v1." + name))
		message, ok := found.(protoreflect.MessageDescriptor)
		schema, isSchema := value.(object)
		if err != nil || !ok || !isSchema || asked[name] {
			continue
		}
		properties, _ := schema["properties"].(object)
		var required []any
		for i := range message.Fields().Len() {
			field := message.Fields().Get(i)
			if !field.HasPresence() {
				required = append(required, field.JSONName())
			}
			walk(properties[field.JSONName()], narrowType)
		}
		if len(required) > 0 {
			schema["required"] = required
		}
	}
}

// narrowType leaves of the types of a field those that an answer has.
func narrowType(schema object) {
	types, ok := schema["type"].([]any)
	if !ok {
		return
	}
	types = slices.DeleteFunc(types, func(t any) bool { return t == "null" || schema["format"] == "int64" && t == "integer" })
	if len(types) == 1 {
		schema["type"] = types[0]
	}
}

// followReferences adds the names of the schemas that a value leads to.
func followReferences(value any, schemas object, names map[string]bool) {
	walk(value, func(o object) {
		ref, _ := o["$ref"].(string)
		name, ok := strings.CutPrefix(ref, schemaPrefix)
		if ok && !names[name] {
			names[name] = true
			followReferences(schemas[name], schemas, names)
		}
	})
}

// dropUnused removes the schemas that no path and no shared response leads to.
func dropUnused(document, schemas object) {
	used := map[string]bool{}
	components, _ := document["components"].(object)
	for _, root := range []any{document["paths"], components["responses"]} {
		followReferences(root, schemas, used)
	}
	for name := range schemas {
		if !used[name] {
			delete(schemas, name)
		}
	}
}

// tagsInUse returns the tags that an operation has.
func tagsInUse(document, paths object) []any {
	var used []any
	walk(paths, func(o object) {
		if tags, ok := o["tags"].([]any); ok {
			used = append(used, tags...)
		}
	})
	kept := []any{}
	all, _ := document["tags"].([]any)
	for _, tag := range all {
		if described, ok := tag.(object); ok && slices.Contains(used, described["name"]) {
			kept = append(kept, tag)
		}
	}
	return kept
}
