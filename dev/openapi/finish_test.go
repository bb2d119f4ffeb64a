package main

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// TestMissingRouteIsReported checks that a document without a route of proto is not printed.
func TestMissingRouteIsReported(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	err := run(strings.NewReader(`{"paths": {"/v1/other": {}}, "components": {"schemas": {"A": {}}}}`), &printed, "no-such-file")
	if err == nil || !strings.Contains(err.Error(), "the plugin's document lacks POST /v1/runs") || printed.Len() > 0 {
		t.Errorf("%v, %d bytes", err, printed.Len())
	}
}

// TestSchemasOfOneNameAreReported checks that no schema replaces another one of the same name.
func TestSchemasOfOneNameAreReported(t *testing.T) {
	t.Parallel()
	document := object{
		"paths":      object{"/v1/other": object{}},
		"components": object{"schemas": object{"switchyard.v1.Value": object{}}},
	}
	if err := finish(document, []protoreflect.ServiceDescriptor{v1.File_switchyard_v1_run_service_proto.Services().Get(0)}); err == nil || !strings.Contains(err.Error(), "two schemas would have the name Value") {
		t.Error(err)
	}
}

// TestConstraintsLeaveDescriptions checks that the plugin's text about rules is removed from descriptions.
func TestConstraintsLeaveDescriptions(t *testing.T) {
	t.Parallel()
	schema := object{"description": "How long.\nduration.gte = 0s\nduration.gte_lt = 0s\n", "format": "duration"}
	field := object{"properties": object{"deadline": schema}}
	walk(field, correctSchema)
	if len(schema) != 1 || schema["$ref"] != schemaPrefix+"google.protobuf.Duration" {
		t.Errorf("the schema is %v", schema)
	}
	schema = object{"description": "How many.\nint32.gte = 0\n more of it."}
	if correctSchema(schema); schema["description"] != "How many.\nmore of it." {
		t.Errorf("the text is %q", schema["description"])
	}
}
