package definition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// TestNearMissHidesNothing checks that a misspelled field suppresses the problem about the field that was meant only if that
// field is missing.
func TestNearMissHidesNothing(t *testing.T) {
	const task = "tasks: { a: { type: shell, spec: { command: x } } }\n"
	for name, test := range map[string]struct {
		document     string
		want, wantNo string
	}{
		"before":       {"name: a\nfailurePolcy: halt\nfailurePolicy: explode\n" + task, `failurePolicy is "explode"`, ""},
		"after":        {"name: a\nfailurePolicy: explode\nfailurePolcy: halt\n" + task, `failurePolicy is "explode"`, ""},
		"snake":        {"name: a\nfailurePolcy: halt\nfailure_policy: explode\n" + task, `failurePolicy is "explode"`, ""},
		"tasks":        {"name: a\ntaks: {}\ntasks: { a: { type: shel, spec: { command: x } } }\n", `unknown type "shel"`, ""},
		"jobs":         {"name: a\njobs: {}\ntasks: { a: { type: shel, spec: { command: x } } }\n", `unknown type "shel"`, ""},
		"empty tasks":  {"name: a\ntaks: {}\ntasks: {}\n", "tasks is empty", ""},
		"number":       {"name: a\ntasks: { a: { type: shell, prority: 1, priority: 99, spec: { command: x } } }\n", "priority is 99", ""},
		"deeper":       {"name: a\ntasks: { a: { type: shell, retryCount: 1, retry: { maxRetries: -1 }, spec: { command: x } } }\n", "maxRetries is -1", ""},
		"another part": {"name: a\ntasks: { a: { type: shell, priority: 99, spec: { command: x, priority: 1 } } }\n", "priority is 99", ""},
		"no tasks":     {"name: a\ntaks: {}\n", "did you mean tasks?", "tasks is"},
		"no command":   {"name: a\ntasks: { a: { type: shell, spec: { comand: x } } }\n", "did you mean command?", "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("a.yaml", []byte(test.document))
			said := fmt.Sprint(err)
			if !strings.Contains(said, "unknown field") || !strings.Contains(said, test.want) ||
				test.wantNo != "" && strings.Contains(said, test.wantNo) {
				t.Errorf("told %s", said)
			}
		})
	}
}

func TestNearMissInMessage(t *testing.T) {
	for name, test := range map[string]struct {
		fields map[string]any
		want   []string
	}{
		"there":   {map[string]any{"comand": "x", "command": ""}, []string{"comand", "command", "priority"}},
		"missing": {map[string]any{"comand": "x"}, []string{"comand", "priority"}},
		"outside": {map[string]any{"command": "x", "priority": 1}, []string{"spec.priority", "priority"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(&v1.Definition{Name: "a", Tasks: map[string]*v1.TaskDefinition{
				"b": {Type: "shell", Priority: 99, Spec: spec(t, test.fields)},
			}})
			problems, _ := err.(source.Problems)
			if len(problems) != len(test.want) {
				t.Fatalf("%d problems, want %d: %v", len(problems), len(test.want), err)
			}
			for _, field := range test.want {
				if !slices.ContainsFunc(problems, func(p *v1.Problem) bool { return strings.HasSuffix(p.GetPath(), "."+field) }) {
					t.Errorf("nothing about %s: %v", field, err)
				}
			}
		})
	}
}

// TestContextSizeIsBounded checks that a context too large for any run is a problem of the definition.
func TestContextSizeIsBounded(t *testing.T) {
	document := func(size int) string {
		return "name: a\ncontext: { big: " + strings.Repeat("x", size) + " }\ntasks: { a: { type: shell, spec: { command: x } } }\n"
	}
	def, err := Parse("a.yaml", []byte(document(MaxContextBytes-100)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse("a.yaml", []byte(document(MaxContextBytes)))
	if want := "a.yaml:2:10: context takes 262161 bytes; the limit is 262144"; !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("told %.200v", err)
	}
	def.Context = spec(t, map[string]any{"big": strings.Repeat("x", MaxContextBytes)})
	if err := check(def); err == nil || !strings.HasPrefix(err.Error(), "context: context takes ") {
		t.Errorf("told %.200v", err)
	}
}
