package definition

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// withoutExamples are specs that need a cluster, which a machine may not have.
var withoutExamples = []protoreflect.Name{"K8sJobSpec"}

// fieldsWithoutExamples are fields of agents that need things that a machine may not have: a sandbox, an engine, programs, the
// internet.
var fieldsWithoutExamples = map[protoreflect.FullName]bool{
	"switchyard.v1.SubagentSpec.image": true, "switchyard.v1.SubagentSpec.network": true, "switchyard.v1.SubagentSpec.fetch_hosts": true,
	"switchyard.v1.SubagentSpec.agent": true, "switchyard.v1.SubagentSpec.command": true, "switchyard.v1.SubagentSpec.stall_timeout": true,
	"switchyard.v1.SubagentSpec.mcp_servers": true, "switchyard.v1.McpServer.command": true, "switchyard.v1.McpServer.env": true,
	"switchyard.v1.McpServer.url": true, "switchyard.v1.McpServer.headers": true, "switchyard.v1.McpServer.tools": true,
}

// TestExamplesUseEverything checks that the examples, which other tests run, use every field of the model, and that each
// example is accepted without a warning.
func TestExamplesUseEverything(t *testing.T) {
	files, err := filepath.Glob("../../dev/examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("files %v, error %v", files, err)
	}
	used := uses{}
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
		used.message((&v1.Definition{}).ProtoReflect().Descriptor(), (&source.Report{File: file}).Read(data), "shell")
	}
	for _, file := range []protoreflect.FileDescriptor{v1.File_switchyard_v1_definition_proto, v1.File_switchyard_v1_spec_proto} {
		for i := range file.Messages().Len() {
			message := file.Messages().Get(i)
			for k := range message.Fields().Len() {
				name := message.Fields().Get(k).FullName()
				if skipped := slices.Contains(withoutExamples, message.Name()) || fieldsWithoutExamples[name]; skipped == used[name] {
					t.Errorf("%s: used by an example: %v, excused: %v", name, used[name], skipped)
				}
			}
		}
	}
}

// uses is the set of fields that documents have.
type uses map[protoreflect.FullName]bool

// message records the fields of a message. taskType is the type of tasks that have none of their own.
func (u uses) message(m protoreflect.MessageDescriptor, n *source.Node, taskType string) {
	for _, e := range n.Entries {
		if e.Key == "defaults" {
			taskType = textOf(e.Value, "type", taskType)
		}
	}
	if m.Name() == "TaskDefinition" {
		taskType = textOf(n, "type", taskType)
	}
	for _, e := range n.Entries {
		field := m.Fields().ByJSONName(e.Key)
		if field == nil {
			continue
		}
		u[field.FullName()] = true
		switch {
		case field.FullName() == specField:
			u.message(newSpec(taskType).ProtoReflect().Descriptor(), e.Value, taskType)
		case field.FullName() == inlineField:
			u.message((&v1.Definition{}).ProtoReflect().Descriptor(), e.Value, "shell")
		case field.IsMap() && field.MapValue().Message() != nil:
			for _, entry := range e.Value.Entries {
				u.message(field.MapValue().Message(), entry.Value, taskType)
			}
		case field.IsList() && field.Message() != nil && field.Message().FullName() != structName && field.Message().FullName() != valueName:
			for _, item := range e.Value.Items {
				u.message(field.Message(), item, taskType)
			}
		case field.IsList() || field.IsMap():
		case field.Message() != nil && field.Message().FullName() != structName && field.Message().FullName() != valueName:
			u.message(field.Message(), e.Value, taskType)
		}
	}
}

func textOf(n *source.Node, key, otherwise string) string {
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value.Text
		}
	}
	return otherwise
}
