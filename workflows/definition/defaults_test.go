package definition

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

const inherits = `
name: a
defaults:
  type: shell
  env: { A: default, B: default }
  constraints: { nodeLabels: [x], avoidGaming: true, minMemoryMb: 5 }
  resources: { cores: 2, memoryMb: 7 }
  retry: { maxRetries: 4, retryable: true }
  timeout: 5m
  deadline: 1h
  expectedWithin: 30m
  priority: 5
tasks:
  all: { spec: { command: x } }
  own:
    spec: { command: x }
    env: { B: "" }
    constraints: { node_labels: [], avoidGaming: false }
    resources: { cores: 0 }
    retry: { maxRetries: 0, retryable: false }
    timeout: 0
    expectedWithin: 0
    priority: 0
  empty: { spec: { command: x }, env: , constraints: , resources: , retry: , timeout: , priority: }
  ask: { type: approval }
`

// TestOwnValuesTakePrecedenceOverDefaults checks that a task's own value always wins, and that the result has no defaults, so
// that it means the same when it is read again.
func TestOwnValuesTakePrecedenceOverDefaults(t *testing.T) {
	def := parse(t, "a.yaml", inherits)
	all := &v1.TaskDefinition{
		Type: "shell", Spec: spec(t, map[string]any{"command": "x"}), Env: map[string]string{"A": "default", "B": "default"},
		Constraints: &v1.Constraints{NodeLabels: []string{"x"}, AvoidGaming: true, MinMemoryMb: 5},
		Resources:   &v1.Resources{Cores: proto.Float64(2), MemoryMb: 7},
		Retry:       &v1.RetryPolicy{MaxRetries: proto.Int32(4), Retryable: proto.Bool(true)},
		Timeout:     "5m", Deadline: "1h", ExpectedWithin: "30m", Priority: 5,
	}
	own := &v1.TaskDefinition{
		Type: "shell", Spec: spec(t, map[string]any{"command": "x"}), Env: map[string]string{"A": "default", "B": ""},
		Constraints: &v1.Constraints{MinMemoryMb: 5},
		Resources:   &v1.Resources{Cores: proto.Float64(0), MemoryMb: 7},
		Retry:       &v1.RetryPolicy{MaxRetries: proto.Int32(0), Retryable: proto.Bool(false)},
		Timeout:     "0", Deadline: "1h", ExpectedWithin: "0",
	}
	ask := &v1.TaskDefinition{Type: "approval", Deadline: "1h", ExpectedWithin: "30m"}
	want := &v1.Definition{Name: "a", Tasks: map[string]*v1.TaskDefinition{"all": all, "own": own, "empty": all, "ask": ask}}
	if diff := cmp.Diff(want, def, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestMessageWhoseValuesHaveNoFormInJSONIsRefused(t *testing.T) {
	deep := structpb.NewNullValue()
	for range 200 {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	for want, value := range map[string]*structpb.Value{"invalid NaN value": structpb.NewNumberValue(math.NaN()), "nests more than 100 levels": deep} {
		def := parse(t, "a.yaml", "name: a\ntasks: { a: { type: shell, spec: { command: x } } }")
		def.Context = &structpb.Struct{Fields: map[string]*structpb.Value{"v": value}}
		if _, err := Complete(def); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestCompleteFillsInDefaultsWithoutModifyingTheMessage checks that a message with defaults is completed like a document, and
// that the original message is not modified.
func TestCompleteFillsInDefaultsWithoutModifyingTheMessage(t *testing.T) {
	given := &v1.Definition{
		Name: "a",
		Defaults: &v1.TaskDefaults{
			Type: "shell", Priority: 5, Env: map[string]string{"A": "default"}, Resources: &v1.Resources{Cores: proto.Float64(2)},
			Constraints: &v1.Constraints{NodeLabels: []string{"x"}},
		},
		Tasks: map[string]*v1.TaskDefinition{
			"b": {Spec: spec(t, map[string]any{"working_directory": "/x", "command": "y"}), Resources: &v1.Resources{Cores: proto.Float64(0)}},
		},
	}
	before := proto.CloneOf(given)
	def, err := Complete(given)
	if err != nil {
		t.Fatal(err)
	}
	want := &v1.Definition{Name: "a", Tasks: map[string]*v1.TaskDefinition{"b": {
		Type: "shell", Spec: spec(t, map[string]any{"workingDirectory": "/x", "command": "y"}), Priority: 5, Env: map[string]string{"A": "default"},
		Resources: &v1.Resources{Cores: proto.Float64(0)}, Constraints: &v1.Constraints{NodeLabels: []string{"x"}},
	}}}
	if diff := cmp.Diff(want, def, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	def.Tasks["b"].Constraints.NodeLabels[0] = "changed"
	if !proto.Equal(given, before) {
		t.Errorf("changed to %v", given)
	}
	given.Defaults.Type = "shel"
	if _, err := Complete(given); err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.HasPrefix(err.Error(), `defaults.type: unknown type "shel"`) {
		t.Errorf("%v", err)
	}
}

// TestInlineDefinitionIsCheckedLikeAnyOther checks that the definition in a spec is treated like any other.
func TestInlineDefinitionIsCheckedLikeAnyOther(t *testing.T) {
	def := parse(t, "a.yaml", `
name: a
tasks:
  child:
    type: run
    spec:
      input: { b: "${{ workflow.name }}" }
      definition: { name: b, defaults: { type: shell, priority: 3 }, tasks: { c: { spec: { command: "${{ workflow.input.b }}" }, priority: 0 }, d: { spec: { command: y } } } }
`)
	child := def.GetTasks()["child"]
	inner, err := FromStruct(child.GetSpec().GetFields()["definition"].GetStructValue())
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, "b.yaml", `{name: b, tasks: {c: {type: shell, spec: {command: "${{ workflow.input.b }}"}}, d: {type: shell, spec: {command: y}, priority: 3}}}`)
	if diff := cmp.Diff(want, inner, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if part := TemplateSpec(child); len(part.GetFields()) != 1 || !HasTemplates(child) || len(child.GetSpec().GetFields()) != 2 {
		t.Errorf("templates are replaced in %v", part)
	}
	delete(child.Spec.Fields, "input")
	if HasTemplates(child) {
		t.Error("the templates of the inner definition count")
	}
	if _, err := FromStruct(nil); err == nil {
		t.Error("nothing is a definition")
	}
	_, err = FromStruct(spec(t, map[string]any{"name": "b", "tasks": map[string]any{"c": map[string]any{"type": "shel"}}}))
	if err == nil || !strings.HasPrefix(err.Error(), `tasks.c.type: unknown type "shel"`) {
		t.Errorf("%v", err)
	}
}

// A default limit of processes is inherited only where something enforces it, and the result can be read again.
func TestDefaultsAreInheritedWhereTheyHaveAnEffect(t *testing.T) {
	def := parse(t, "a.yaml", `
name: a
defaults: { type: shell, resources: { maxProcesses: 9, memoryMb: 7 }, env: { A: b }, priority: 3 }
tasks:
  plain: { spec: { command: x } }
  boxed: { spec: { command: x, sandbox: true } }
  image: { type: container, spec: { image: x } }
  child: { type: run, spec: { workflow: other } }
  locked: { type: approval, mutex: m }
`)
	for name, want := range map[string]*v1.TaskDefinition{
		"plain":  {Resources: &v1.Resources{MemoryMb: 7}, Env: map[string]string{"A": "b"}, Priority: 3},
		"boxed":  {Resources: &v1.Resources{MemoryMb: 7, MaxProcesses: 9}, Env: map[string]string{"A": "b"}, Priority: 3},
		"image":  {Resources: &v1.Resources{MemoryMb: 7, MaxProcesses: 9}, Env: map[string]string{"A": "b"}, Priority: 3},
		"child":  {Priority: 3},
		"locked": {Priority: 3},
	} {
		got := def.GetTasks()[name]
		got = &v1.TaskDefinition{Resources: got.GetResources(), Env: got.GetEnv(), Priority: got.GetPriority()}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if err := check(def); err != nil {
		t.Error(err)
	}
}

// A default that has no effect on any task produces a warning.
func TestDefaultsWithoutEffectAreWarnedOf(t *testing.T) {
	checked, err := ParseChecked("a.yaml", []byte(`
name: a
defaults: { type: shell, resources: { maxProcesses: 9, memoryMb: 7 }, timeout: 5m, env: { A: b } }
tasks:
  plain: { spec: { command: x }, timeout: 1m }
  child: { type: run, spec: { workflow: other } }
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range checked.Warnings {
		got = append(got, fmt.Sprintf("%d:%d %s: %s", w.GetLine(), w.GetColumn(), w.GetMessage(), w.GetHint()))
	}
	want := []string{
		"3:39 defaults.resources.maxProcesses has no effect on any task of the workflow: resources.maxProcesses is for containers and sandboxes",
		"3:71 defaults.timeout has no effect on any task of the workflow: timeout is for tasks that run on a node",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// References to secrets are inherited entry by entry. A task's own variable, plain or secret, takes precedence over a default
// of either kind.
func TestSecretsAreInheritedBesideVariables(t *testing.T) {
	def := parse(t, "a.yaml", `
name: a
defaults:
  type: shell
  env: { PLAIN: p, BOTH: p }
  secretEnv: { SECRET: "env:S", OTHER: "file:/run/o" }
tasks:
  none: { spec: { command: x } }
  own: { spec: { command: x }, env: { SECRET: mine }, secret_env: { BOTH: "store:b", OTHER: "env:O" } }
  ask: { type: approval }
`)
	for name, want := range map[string]*v1.TaskDefinition{
		"none": {Env: map[string]string{"PLAIN": "p", "BOTH": "p"}, SecretEnv: map[string]string{"SECRET": "env:S", "OTHER": "file:/run/o"}},
		"own":  {Env: map[string]string{"PLAIN": "p", "SECRET": "mine"}, SecretEnv: map[string]string{"BOTH": "store:b", "OTHER": "env:O"}},
		"ask":  {},
	} {
		got := def.GetTasks()[name]
		if diff := cmp.Diff(want, &v1.TaskDefinition{Env: got.GetEnv(), SecretEnv: got.GetSecretEnv()}, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
