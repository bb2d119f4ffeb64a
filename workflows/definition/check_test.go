package definition

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

func spec(t *testing.T, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCheckAppliesTheRulesOfADocument checks that a message follows the rules of a document, and that problems show the path
// if there is no position.
func TestCheckAppliesTheRulesOfADocument(t *testing.T) {
	def := &v1.Definition{
		Name: "_Bad",
		Tasks: map[string]*v1.TaskDefinition{
			"a": {Type: "shell", Spec: spec(t, map[string]any{"working_directory": "/x", "command": []any{"sleep", 5}})},
			"b": {Type: "shell", DependsOn: []string{"a", "c"}, Priority: 11, Env: map[string]string{"X": "${{ y }}"}},
			"c": {Type: "shell", Spec: spec(t, map[string]any{"command": "x", "comand": "y"}), DependsOn: []string{"b"},
				Retry: &v1.RetryPolicy{BackoffMs: proto.Int32(-1)}},
			"d": nil,
		},
	}
	err := check(def)
	if err == nil {
		t.Fatal("accepted")
	}
	golden.Check(t, "testdata/message.golden", err.Error()+"\n")
}

// TestCheckShowsConditionErrorsWithoutADocument checks that CEL's own rendering of the fault is used if there is no document.
func TestCheckShowsConditionErrorsWithoutADocument(t *testing.T) {
	err := check(&v1.Definition{Name: "a", Tasks: map[string]*v1.TaskDefinition{
		"b": {Type: "approval", Condition: "1 +"},
	}})
	problems, _ := errors.AsType[source.Problems](err)
	if len(problems) != 1 || problems[0].GetPath() != "tasks.b.condition" || !strings.Contains(problems[0].GetSnippet(), "1 +\n") {
		t.Errorf("%v", err)
	}
}

func TestCheckRefusesAnEmptyDefinition(t *testing.T) {
	for _, def := range []*v1.Definition{nil, {}} {
		if err := check(def); err == nil {
			t.Errorf("%v is accepted", def)
		}
	}
}

func TestReferences(t *testing.T) {
	def := parse(t, "a.yaml", `
name: a
tasks:
  lint: { type: shell, spec: { command: x } }
  test: { type: shell, spec: { command: x } }
  build: { type: shell, spec: { command: x }, dependsOn: [lint, test] }
  deploy:
    type: shell
    spec: { command: x }
    dependsOn: [build]
    condition: parent.test.stdout.includes('0 failures') && parent.build.exitCode === 0
  last: { type: shell, spec: { command: x }, dependsOn: [deploy], condition: "workflow.name == 'a'" }
`)
	references, err := References(def)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"build", "test"}, references["deploy"].GetTasks()); diff != "" {
		t.Error(diff)
	}
	if last, ok := references["last"]; !ok || len(last.GetTasks()) != 0 || len(references) != 2 {
		t.Errorf("%v", references)
	}
	def.Tasks["deploy"].Condition = "parent.nope.exitCode"
	if _, err := References(def); err == nil {
		t.Error("a bad condition is accepted")
	}
}
