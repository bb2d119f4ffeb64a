package definition

import (
	"regexp"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// TestShapeIgnoresTheNamesOfTasks checks which expressions count as the same apart from their tasks.
func TestShapeIgnoresTheNamesOfTasks(t *testing.T) {
	mark := func(task string) string {
		switch task {
		case "each":
			return "*"
		case "ended":
			return "^"
		}
		return ""
	}
	for text, want := range map[string]struct {
		shape string
		tasks []string
	}{
		"workflow.name == 'x'":                           {"workflow.name == 'x'", nil},
		"parent.a.exitCode == parent['b-1'].exitCode":    {"parent.#0.exitCode == parent['#1'].exitCode", []string{"a", "b-1"}},
		`parent.a.x + parent["a"].y + parent.each.count`: {`parent.#0.x + parent["#0"].y + parent.#1*.count`, []string{"a", "each"}},
	} {
		shape, tasks, ok := shapeOf(text, false, mark)
		if !ok || shape != want.shape || !slices.Equal(tasks, want.tasks) {
			t.Errorf("%s: %q %v %v", text, shape, tasks, ok)
		}
	}
	if shape, tasks, ok := shapeOf("tasks.ended.x == parent.a.x", true, mark); !ok || shape != "tasks.#0^.x == parent.#1.x" || !slices.Equal(tasks, []string{"ended", "a"}) {
		t.Errorf("in finally: %q %v %v", shape, tasks, ok)
	}
	for _, text := range []string{
		"parent[workflow.context.x].exitCode", "parent.exists(t, true)", "size(parent)", "parent.in.exitCode", "parent.notify-failure.exitCode",
		"parent .a.exitCode", "parents.a", "'parent' + parent.a.stdout", "parent['a'+'b'].x",
	} {
		if shape, _, ok := shapeOf(text, false, mark); ok {
			t.Errorf("%s has the shape %s", text, shape)
		}
	}
}

// TestShapesChangeNothing checks that checking expressions by shape finds the same problems as checking them one by one.
func TestShapesChangeNothing(t *testing.T) {
	expressions := []string{
		"parent.A.exitCode == 0", "parent['A'].exitCode == 0", "parent.A.count == 1", "parent.A.output.x == parent.B.output.x", "parent.A.stdout == 'parent.B'",
		"parent[workflow.context.x].exitCode == 0", "workflow.name == 'A'", "parent.A.nope", "size(parent) == 0", "parent.A.exitCode == parent.A.exitCode",
	}
	rapid.Check(t, func(t *rapid.T) {
		def := &v1.Definition{Name: "a", Tasks: map[string]*v1.TaskDefinition{}}
		names := []string{"t0", "t1", "t2", "t3", "t4", "t5"}
		for i, name := range names {
			task := &v1.TaskDefinition{Type: "approval"}
			if rapid.Bool().Draw(t, "fans out") {
				task.Foreach = listOf("x")
			}
			if i > 0 {
				task.DependsOn = rapid.SliceOfDistinct(rapid.SampledFrom(names[:i]), rapid.ID).Draw(t, "dependsOn")
			}
			task.Condition = rapid.SampledFrom(expressions).Draw(t, "expression")
			for _, stands := range []string{"A", "B"} {
				task.Condition = replaceWord(task.Condition, stands, rapid.SampledFrom(names).Draw(t, stands))
			}
			def.Tasks[name] = task
		}
		together, err := References(def)
		for _, name := range names {
			// Only this task has an expression.
			alone := proto.CloneOf(def)
			for other, task := range alone.Tasks {
				if other != name {
					task.Condition = ""
				}
			}
			one, problem := References(alone)
			if problem != nil {
				problems, _ := err.(source.Problems)
				if !slices.ContainsFunc(problems, func(p *v1.Problem) bool { return proto.Equal(p, problem.(source.Problems)[0]) }) {
					t.Fatalf("%s alone: %v\ntogether: %v", name, problem, err)
				}
			} else if err == nil && !proto.Equal(one[name], together[name]) {
				t.Fatalf("%s reads %v alone, and %v together", name, one[name], together[name])
			}
		}
	})
}

func replaceWord(text, word, by string) string {
	return regexp.MustCompile(`\b`+word+`\b`).ReplaceAllString(text, by)
}

func listOf(items ...string) *structpb.Value {
	list := &structpb.ListValue{}
	for _, item := range items {
		list.Values = append(list.Values, structpb.NewStringValue(item))
	}
	return structpb.NewListValue(list)
}
