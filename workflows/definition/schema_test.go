package definition

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

func TestSchemaGolden(t *testing.T) {
	golden.Check(t, "testdata/schema.golden", string(Schema()))
}

// TestSchemaIsCurrent checks that the embedded model is the one that is linked in.
func TestSchemaIsCurrent(t *testing.T) {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(describedModel, set); err != nil {
		t.Fatal(err)
	}
	linked := map[string]*descriptorpb.FileDescriptorProto{}
	for _, file := range []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(v1.File_switchyard_v1_definition_proto),
		protodesc.ToFileDescriptorProto(v1.File_switchyard_v1_spec_proto),
	} {
		linked[file.GetName()] = file
	}
	if len(set.GetFile()) != len(linked) {
		t.Fatalf("%d files", len(set.GetFile()))
	}
	for _, file := range set.GetFile() {
		file.SourceCodeInfo = nil
		if !proto.Equal(file, linked[file.GetName()]) {
			t.Errorf("%s has changed; run dev/generate.sh", file.GetName())
		}
	}
}

func TestSchemaDescribesEverything(t *testing.T) {
	known := comments()
	for name := range known {
		if strings.TrimSpace(known[name]) == "" {
			t.Errorf("%s has no comment", name)
		}
	}
	if len(known) < 60 {
		t.Errorf("only %d comments", len(known))
	}
}

func TestSchemaAccepts(t *testing.T) {
	for _, file := range goodFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaFaults(t, string(data)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Editors offer what is in properties: each field once, in its canonical spelling.
func TestSchemaListsEachFieldOnce(t *testing.T) {
	var root object
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	schemas := []any{root}
	for _, schema := range root["$defs"].(object) {
		schemas = append(schemas, schema)
	}
	for _, schema := range schemas {
		for name := range schema.(object)["properties"].(object) {
			if strings.Contains(name, "_") {
				t.Errorf("%s is offered", name)
			}
		}
	}
	if err := schemaFaults(t, "{name: a, failure_policy: halt, x-anchors: {b: 1}, tasks: {b: {type: approval, depends_on: []}}}"); err != nil {
		t.Errorf("snake_case is refused: %v", err)
	}
	if schemaFaults(t, "{name: a, failure_policy: stop, tasks: {b: {type: approval}}}") == nil {
		t.Error("snake_case is not checked")
	}
}

func TestSchemaRefuses(t *testing.T) {
	task := func(fields string) string { return "{name: a, tasks: {b: {" + fields + "}}}" }
	for _, document := range []string{
		"{name: a}", "{name: _a, tasks: {b: {type: approval}}}", "{name: a, tasks: {}}", "[]",
		"{name: a, tasks: {'b c': {type: approval}}}",
		task(""), task("type: shel"), task("type: shell"), task("type: shell, spec: {cmd: x}"), task("type: shell, spec: {command: []}"),
		task("type: shell, spec: {command: ''}"),
		task("type: shell, spec: {command: x}, priority: 11"), task("type: shell, spec: {command: x}, priority: high"), task("type: shell, spec: {command: x}, retry: {backoffMs: -1}"),
		task("type: shell, spec: {command: x}, dependsOn: [], depends_on: []"), task("type: shell, spec: {command: x}, needs: []"), task("type: shell, spec: {command: x}, timeout: soon"),
		task("type: shell, spec: {command: x}, env: {1A: x}"), task("type: shell, spec: {command: x}, constraints: {targetNode: 'a:b'}"), task("type: container, spec: {command: x}"),
		task("type: claude_relay, spec: {prompt: x}"),
	} {
		if schemaFaults(t, document) == nil {
			t.Errorf("%s is accepted", document)
		}
		if _, err := Parse("a.yaml", []byte(document)); err == nil {
			t.Errorf("Parse accepts %s", document)
		}
	}
}

// schemaFaults returns what the schema finds wrong with a document in YAML, or nil.
func schemaFaults(t *testing.T, document string) error {
	t.Helper()
	var free any
	if err := yaml.Unmarshal([]byte(document), &free); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(free)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	values := make([]any, 2)
	for i, data := range [][]byte{Schema(), text} {
		if values[i], err = jsonschema.UnmarshalJSON(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := compiler.AddResource("definition.json", values[0]); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("definition.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(values[1])
}
