package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestFan checks how the fan-out of tasks is read.
func TestFan(t *testing.T) {
	def := parse(t, "a.yaml", `
name: a
tasks:
  none: { type: shell, spec: { command: x } }
  four: { type: shell, spec: { command: x }, parallel: 4, batch: 3 }
  zero: { type: shell, spec: { command: x }, parallel: 0, batch: 0 }
  count: { type: shell, spec: { command: x }, dependsOn: four, parallel: parent.four.count, batch: auto }
  list: { type: shell, spec: { command: x }, foreach: [a, { b: 1 }] }
  empty: { type: shell, spec: { command: x }, foreach: [] }
  items: { type: shell, spec: { command: x }, dependsOn: none, foreach: none.files, env: { A: "${{ input.item }}" } }
  spec: { type: shell, spec: { command: [echo, "${{ parent.none.stdout + parent.zero.state }}"] }, dependsOn: [none, zero], env: { A: "${{ parent.zero.count }}" } }
  all: { type: shell, spec: { command: x }, dependsOn: [items, spec], cache: { key: parent.items.outputs }, retry: { when: "true" }, condition: parent.spec.exitCode == 0 }
`)
	for name, want := range map[string]FanOut{
		"four": {Count: 4}, "zero": {}, "count": {Expression: "parent.four.count"},
		"list":  {Foreach: true, Count: 2, Items: []*structpb.Value{structpb.NewStringValue("a"), structpb.NewStructValue(spec(t, map[string]any{"b": 1}))}},
		"empty": {Foreach: true}, "items": {Foreach: true, Expression: "none.files"},
	} {
		got, ok := Fan(def.GetTasks()[name])
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || !ok {
			t.Errorf("%s: %v %s", name, ok, diff)
		}
	}
	if _, ok := Fan(def.GetTasks()["none"]); ok {
		t.Error("a task without instances fans out")
	}
	for name, want := range map[string]struct {
		size int
		auto bool
	}{"four": {3, false}, "zero": {1, false}, "none": {1, false}, "count": {1, true}} {
		if size, auto := BatchOf(def.GetTasks()[name]); size != want.size || auto != want.auto {
			t.Errorf("%s: %d, %v", name, size, auto)
		}
	}
	if size, auto := BatchOf(&v1.TaskDefinition{Type: v1.TypeK8sJob, Batch: structpb.NewStringValue(autoBatch)}); size != 1 || auto {
		t.Errorf("outside of the nodes: %d, %v", size, auto)
	}
	for name, task := range def.GetTasks() {
		if got := HasTemplates(task); got != (name == "items" || name == "spec") {
			t.Errorf("%s has templates: %v", name, got)
		}
	}
	references, err := References(def)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*historyv1.ConditionReferences{
		"count": {FanOut: []string{"four"}}, "items": {FanOut: []string{"none"}}, "spec": {Templates: []string{"none", "zero"}},
		"all": {Tasks: []string{"spec"}, Cache: []string{"items"}},
	}
	if diff := cmp.Diff(want, references, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// TestCheckFanOut checks that values of the wrong kind in a message are found. No document can hold such values.
func TestCheckFanOut(t *testing.T) {
	for want, task := range map[string]*v1.TaskDefinition{
		"tasks.a.parallel: parallel is empty; it must be a whole number, or an expression such as discover.count": {Parallel: structpb.NewNullValue()},
		"tasks.a.foreach: foreach is empty; it must be a list, or an expression such as discover.files":           {Foreach: &structpb.Value{}},
		"tasks.a.batch: batch is true; it must be a whole number from 0 to 1000, or auto":                         {Parallel: structpb.NewNumberValue(1), Batch: structpb.NewBoolValue(true)},
	} {
		task.Type, task.Spec = "shell", spec(t, map[string]any{"command": "x"})
		err := check(&v1.Definition{Name: "a", Tasks: map[string]*v1.TaskDefinition{"a": task}})
		checkOnly(t, err, want)
	}
}
