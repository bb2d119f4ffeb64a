package main

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// narrowAnswers narrows the schemas of messages that occur only in responses to what a response has: fields without
// presence are always set, including zero values; 64-bit integers are strings; nothing is null. It leaves messages that
// a request may also have unchanged.
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

// narrowType reduces the types of a field to those in a response.
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

// followReferences adds the names of the schemas that a value references.
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

// dropUnused removes the schemas that no path and no shared response references.
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

// tagsInUse returns the tags that operations use.
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
