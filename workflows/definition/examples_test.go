package definition

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// withoutExamples are specs that need a cluster, which a machine may not have.
var withoutExamples = []protoreflect.Name{"K8sJobSpec"}

// fieldsWithoutExamples are fields of agents and of sources that need things that a machine may not have: a sandbox, an engine,
// programs, a repository, the internet. The last one is another name for a field.
var fieldsWithoutExamples = map[protoreflect.FullName]bool{
	"switchyard.v1.SubagentSpec.image": true, "switchyard.v1.SubagentSpec.network": true, "switchyard.v1.SubagentSpec.fetch_hosts": true,
	"switchyard.v1.SubagentSpec.agent": true, "switchyard.v1.SubagentSpec.command": true, "switchyard.v1.SubagentSpec.stall_timeout": true,
	"switchyard.v1.SubagentSpec.mcp_servers": true, "switchyard.v1.McpServer.command": true, "switchyard.v1.McpServer.env": true,
	"switchyard.v1.McpServer.url": true, "switchyard.v1.McpServer.headers": true, "switchyard.v1.McpServer.tools": true,
	"switchyard.v1.SourceDefinition.git": true, "switchyard.v1.SourceDefinition.ref": true, "switchyard.v1.SourceDefinition.path": true, "switchyard.v1.SourceDefinition.secret": true,
	"switchyard.v1.ApprovalSpec.roles": true,
}

// TestExamplesUseEverything checks that the examples, which other tests run, use every field of the model, and that each
// example is accepted without a warning.
func TestExamplesUseEverything(t *testing.T) {
	files, err := filepath.Glob("../../dev/examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("files %v, error %v", files, err)
	}
	used := map[protoreflect.FullName]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checked, err := ParseChecked(filepath.Base(file), data)
		if err != nil || len(checked.Warnings) > 0 {
			t.Errorf("not accepted, or warned of:\n%v\n%v", err, checked.Warnings)
			continue
		}
		if _, err := os.Stat(strings.TrimSuffix(file, ".yaml") + ".want.json"); err != nil {
			t.Errorf("%s has no expected outcome: %v", file, err)
		}
		useFields(t, used, (&source.Report{File: file}).Read(data))
	}
	for _, message := range modelMessages() {
		for i := range message.Fields().Len() {
			name := message.Fields().Get(i).FullName()
			if skipped := slices.Contains(withoutExamples, message.Name()) || fieldsWithoutExamples[name] || isDeprecated(message.Fields().Get(i)); skipped == used[name] {
				t.Errorf("%s: used by an example: %v, excused: %v", name, used[name], skipped)
			}
		}
	}
}

// useFields records the fields of the messages in a definition, and in the specs of its tasks.
func useFields(t *testing.T, used map[protoreflect.FullName]bool, tree *source.Node) {
	d := newDocument(&decoder{Report: &source.Report{}, places: map[string]place{}}, new([]StoredReference))
	def := &v1.Definition{}
	d.reader.message(tree, def.ProtoReflect(), d.base)
	messages := []proto.Message{proto.CloneOf(def)} // with the defaults, which complete removes
	for _, spec := range d.complete(def) {
		messages = append(messages, spec)
	}
	for _, inner := range d.inner {
		messages = append(messages, inner)
	}
	for _, message := range messages {
		err := protorange.Range(message.ProtoReflect(), func(at protopath.Values) error {
			if step := at.Path.Index(-1); step.Kind() == protopath.FieldAccessStep {
				used[step.FieldDescriptor().FullName()] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
