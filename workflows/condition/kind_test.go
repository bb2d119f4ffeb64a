package condition

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchyard/dev/golden"
)

// wide returns a scope of a kind in which `each` fans out, the run takes the inputs `channel` and `files`, and the ancestors
// are those of deploy together with `each` and `list-files`.
func wide(kind Kind) Scope {
	return Scope{
		Kind: kind, Task: "deploy",
		Ancestors: []string{"build", "each", "lint", "list", "list-files", "notify-failure", "process"},
		Tasks:     []string{"1st", "build", "deploy", "each", "in", "lint", "list", "list-files", "notify-failure", "other", "process", "test"},
		FanOut:    []string{"each", "other"},
		Inputs:    []string{"channel", "files"},
	}
}

func TestCheckKinds(t *testing.T) {
	tests := []struct {
		kind Kind
		expr string
		want []string
	}{
		{Condition, "parent.each.failed == 0 && parent.each.outputs.all(o, o.size > 1.0)", []string{"each"}},
		{Condition, "parent.each.state == 'completed' && parent.each.exitCode == 0", []string{"each"}},
		{Condition, "workflow.input.channel == 'stable'", nil},
		{Condition, "[1].exists(input, input == 1) && [1].exists(attempt, attempt == 1)", nil},
		{Count, "3", nil},
		{Count, "build.count", []string{"build"}},
		{Count, "parent.build.exitCode", []string{"build"}},
		{Count, "parent.each.count - parent.each.failed", []string{"each"}},
		{Count, "size(build.files) + int(lint.count)", []string{"build", "lint"}},
		{Count, "workflow.input.files.size()", nil},
		{Items, "build.files", []string{"build"}},
		{Items, "process.files", []string{"process"}},
		{Items, "build['files']", []string{"build"}},
		{Items, "build[workflow.name]", []string{"build"}},
		{Items, "parent['list-files'].output.items", []string{"list-files"}},
		{Items, "parent.build.stdout.split('\\n')", []string{"build"}},
		{Items, "lint.files.filter(build, build.size > lint.limit)", []string{"lint"}},
		{Items, "parent.each.outputs.map(o, o.name)", []string{"each"}},
		{Items, "['a', build.name]", []string{"build"}},
		{Items, "workflow.input.files", nil},
		{CacheKey, "build.sha + '-' + input.mode", []string{"build"}},
		{CacheKey, "[build.sha, workflow.input['channel']]", []string{"build"}},
		{Retry, "", nil},
		{Retry, "attempt.exitCode in [75, 111] || attempt.stderr.includes('reset')", nil},
		{Retry, "attempt.number < 2 && workflow.input.channel === 'x'", nil},
		{Value, "build.nested.key", []string{"build"}},
		{Value, "parent.exists(p, parent[p].state == 'failed') ? {} : input", wide(Value).Ancestors},
		{Value, "null", nil},
	}
	for _, test := range tests {
		got, err := Check(test.expr, wide(test.kind))
		if err != nil {
			t.Errorf("%d: Check(%q): %v", test.kind, test.expr, err)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%d: Check(%q) (-want +got):\n%s", test.kind, test.expr, diff)
		}
	}
}

// TestCheckKindErrors compares messages with a golden file, whose blocks begin with the kind and the expression.
func TestCheckKindErrors(t *testing.T) {
	path := filepath.Join("testdata", "kinds.golden")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]Kind{"condition": Condition, "parallel": Count, "foreach": Items, "key": CacheKey, "retry": Retry, "value": Value}
	var after strings.Builder
	for _, block := range strings.Split(strings.TrimSuffix(string(before), "\n\n"), "\n\n") {
		first, _, _ := strings.Cut(block, "\n")
		name, expr, _ := strings.Cut(first, ": ")
		kind, ok := kinds[strings.TrimSuffix(name, ":")]
		if !ok && name != "template" {
			t.Fatalf("no kind %q", name)
		}
		check := Check
		if name == "template" {
			check = CheckTemplate
		}
		_, err := check(expr, wide(kind))
		problem, ok := err.(*Error)
		if !ok {
			t.Errorf("%s = %v, want an *Error", first, err)
			continue
		}
		fmt.Fprintf(&after, "%s\n%s\n%s\n\n", first, problem.Caret, strings.TrimSpace("hint: "+problem.Hint))
	}
	golden.Check(t, path, after.String())
}
