package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// object is a JSON object.
type object = map[string]any

// finish completes the plugin's document in place. services are the documented services.
func finish(document object, services []protoreflect.ServiceDescriptor) error {
	paths, _ := document["paths"].(object)
	components, _ := document["components"].(object)
	schemas, _ := components["schemas"].(object)
	if len(paths) == 0 || len(schemas) == 0 {
		return fmt.Errorf("the document has %d paths and %d schemas; both are needed", len(paths), len(schemas))
	}
	walk(document, correctSchema)
	addWellKnown(schemas)
	if err := shortenNames(document, schemas); err != nil {
		return err
	}
	document["components"] = object{"schemas": schemas, "responses": errorResponses(), "parameters": sharedParameters()}
	schemas["Error"] = errorSchema()
	for _, service := range services {
		for i := range service.Methods().Len() {
			if err := finishCall(paths, service.Methods().Get(i)); err != nil {
				return err
			}
		}
	}
	addArtifact(paths)
	if err := checkStreams(paths); err != nil {
		return err
	}
	dropUnused(document, schemas)
	narrowAnswers(paths, schemas)
	document["tags"] = tagsInUse(document, paths)
	delete(document, "security")
	return nil
}

// walk calls visit for every object of a value, parents first.
func walk(value any, visit func(object)) {
	switch v := value.(type) {
	case object:
		visit(v)
		for _, below := range v {
			walk(below, visit)
		}
	case []any:
		for _, below := range v {
			walk(below, visit)
		}
	}
}

// schemaPrefix is the prefix of a reference to a schema.
const schemaPrefix = "#/components/schemas/"

// shortenNames removes the packages from the names of schemas.
func shortenNames(document, schemas object) error {
	for name, schema := range schemas {
		short := shortName(name)
		if short == name {
			continue
		}
		if _, taken := schemas[short]; taken {
			return fmt.Errorf("two schemas would have the name %s", short)
		}
		delete(schemas, name)
		schemas[short] = schema
	}
	walk(document, func(o object) {
		if ref, ok := o["$ref"].(string); ok {
			o["$ref"] = schemaPrefix + shortName(strings.TrimPrefix(ref, schemaPrefix))
		}
	})
	return nil
}

func shortName(name string) string {
	for _, prefix := range []string{"switchyard.v1.", "google.protobuf."} {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			return short
		}
	}
	return name
}
