package main

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// requireInAnswers marks the fields that an answer always has, zero values included: those without presence. A message
// that a request may have, too, is left as it is.
func requireInAnswers(paths, schemas object) {
	asked := map[string]bool{}
	walk(paths, func(o object) {
		if body, ok := o["requestBody"]; ok {
			followReferences(body, schemas, asked)
		}
	})
	for name, schema := range schemas {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("switchyard.v1." + name))
		message, ok := found.(protoreflect.MessageDescriptor)
		if err != nil || !ok || asked[name] {
			continue
		}
		var required []any
		for i := range message.Fields().Len() {
			if field := message.Fields().Get(i); !field.HasPresence() {
				required = append(required, field.JSONName())
			}
		}
		if schema, ok := schema.(object); ok && len(required) > 0 {
			schema["required"] = required
		}
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
