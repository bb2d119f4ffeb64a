package condition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchyard/dev/golden"
)

// deploy returns the scope of the tests: the task depends on lint, build and notify-failure, and not on test.
func deploy() Scope {
	return Scope{
		Task:      "deploy",
		Ancestors: []string{"build", "lint", "notify-failure"},
		Tasks:     []string{"1st", "build", "deploy", "in", "lint", "notify-failure", "test"},
	}
}

func TestCheckReferences(t *testing.T) {
	all := deploy().Ancestors
	tests := map[string][]string{
		"":                             nil,
		" \n\t":                        nil,
		"true":                         nil,
		"workflow.context.env == 'x'":  nil,
		"parent.build.exitCode == 0":   {"build"},
		".parent.build.exitCode == 0":  {"build"},
		"parent . build.exitCode == 0": {"build"},
		"parent.lint.exitCode == 0 && parent.build.exitCode == 0 && parent.lint.stdout == ''": {"build", "lint"},
		"parent['notify-failure'].exitCode == 0":                                              {"notify-failure"},
		"parent[workflow.context.which].exitCode == 0":                                        all,
		"parent['bui' + 'ld'].exitCode == 0":                                                  all,
		"parent.all(t, parent[t].state == 'completed')":                                       all,
		"parent.size() == 3":                                                                  all,
		"has(parent.build.output.key)":                                                        {"build"},
		"has(parent.build)":                                                                   {"build"},
		"[1].exists(x, x == parent.build.exitCode)":                                           {"build"},
		"{'k': [parent.build.stdout]} != {}":                                                  {"build"},
		// The seed's own expressions, and other JavaScript spellings.
		"parent.build.exitCode === 0 && parent.lint.result.stdout.includes('0 failures')": {"build", "lint"},
		"parent.build.exitCode !== 0":                                            {"build"},
		"/fail(ed|ures?)/i.test(parent.lint.stderr)":                             {"lint"},
		"!/a[/]b/.test( /x/.test(parent.build.stdout) ? 'a' : 'b')":              {"build"},
		"parent.build.output.tags . includes ('x')":                              {"build"},
		"parent.build.stdout == '=== .includes( /x/.test(y) undefined process.'": {"build"},
		"parent.build.output.process == 1 // typeof === undefined":               {"build"},
		"parent.build.output.length / 2.0 > 3.0 / 4.0":                           {"build"},
		`parent.build.stdout == """a
b === ' c""" || parent.build.stdout.contains(r'\d')`: {"build"},
	}
	for expr, want := range tests {
		got, err := Check(expr, deploy())
		if err != nil {
			t.Errorf("Check(%q): %v", expr, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Check(%q) (-want +got):\n%s", expr, diff)
		}
	}
}

// TestCheckErrorsMatchGoldenFile compares messages with a golden file.
func TestCheckErrorsMatchGoldenFile(t *testing.T) {
	path := filepath.Join("testdata", "errors.golden")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var after strings.Builder
	for _, block := range strings.Split(strings.TrimSuffix(string(before), "\n\n"), "\n\n") {
		expr, _, _ := strings.Cut(block, "\n")
		expr = strings.ReplaceAll(expr, "⏎", "\n")
		_, err := Check(expr, deploy())
		problem, ok := err.(*Error)
		if !ok {
			t.Errorf("Check(%q) = %v, want an *Error", expr, err)
			continue
		}
		fmt.Fprintf(&after, "%s\n%s\n%s\n\n", strings.ReplaceAll(expr, "\n", "⏎"), problem.Caret, strings.TrimSpace("hint: "+problem.Hint))
		if place := fmt.Sprintf(":%d:%d: %s\n", problem.Line, problem.Column, problem.Message); !strings.Contains(problem.Caret, place) {
			t.Errorf("Check(%q): %q does not say %q", expr, problem.Caret, place)
		}
	}
	golden.Check(t, path, after.String())
}

// TestCheckRefusesLargeExpressions checks expressions that are too large; each is either an error or harmless.
func TestCheckRefusesLargeExpressions(t *testing.T) {
	repeat := func(open, middle, end string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	tests := map[string]struct {
		expr string
		want string // substring of the message; empty if there must be no error
	}{
		"long":            {strings.Repeat(" ", maxLength) + "true", "longer than"},
		"not UTF-8":       {"'\xff' == ''", "UTF-8"},
		"brackets":        {repeat("(", "true", ")", 1000), "too deeply"},
		"open brackets":   {repeat("(", "", "", 4000), "too deeply"},
		"lists":           {repeat("[", "", "]", 1000) + " == []", "too deeply"},
		"maps":            {repeat("{'a':", "1", "}", 500) + " == {}", "too deeply"},
		"members":         {"parent.build.output" + repeat(".a", "", "", 1000) + " == 1", "too deeply"},
		"sums":            {repeat("1+", "1", "", 1000) + " == 1", "too deeply"},
		"choices":         {repeat("true?true:", "true", "", 500), "too deeply"},
		"tests":           {repeat("/a/.test(", "'a'", ")", 700), "too deeply"},
		"loops":           {"[1]" + repeat(".map(x, x)", "", "", 17) + " == []", "loops"},
		"nested loops":    {repeat("[1].all(x, ", "true", ")", 17), "loops"},
		"literal":         {"[" + repeat("1,", "1", "", 200) + "] == []", "entries"},
		"map literal":     {"{" + repeat("1:1,", "1:1", "", 200) + "} == {}", "entries"},
		"pattern":         {"''.matches('" + repeat("x", "", "", 1025) + "')", "too large"},
		"pattern program": {"''.matches('(a{1000}|b{1000}|c{1000})')", "too large"},
		"negations":       {repeat("!", "true", "", 6000), ""},
		"conjunctions":    {repeat("true && ", "true", "", 1000), ""},
		"quotes":          {repeat("'", "", "", 5000), "too many syntax errors"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Check(test.expr, deploy())
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %.200v, want %q", err, test.want)
			}
		})
	}
}

func TestScopeWithoutAncestors(t *testing.T) {
	_, err := Check("parent.build.exitCode == 0", Scope{Task: "deploy", Tasks: []string{"build", "deploy"}})
	if err == nil || !strings.Contains(err.Error(), "deploy depends on nothing; 'build' is not an ancestor") {
		t.Errorf("got %v", err)
	}
}

// Each fault of a text is reported, and a repeated fault once.
func TestCheckNamesEveryFault(t *testing.T) {
	t.Parallel()
	scope := Scope{Kind: Value, Task: "t", Ancestors: []string{"a"}, Tasks: []string{"a", "b", "t"}, Inputs: []string{"tag"}}
	_, err := CheckTemplate("${{ workflow.input.x + parent.b.stdout + y }} ${{ y }} ${{ parent.a.nothing }} ${{ workflow.input.tag }} ${{ 1 + }}", scope)
	first, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatal(err)
	}
	var got []string
	for _, e := range first.each() {
		got = append(got, e.Error())
	}
	const seen = "a template sees parent.<task>, workflow and input; text needs quotes: 'y'"
	want := []string{
		"1:20: the workflow declares no input 'x' (add it to inputs)",
		"1:31: t depends on a; 'b' is not an ancestor (add b to its dependsOn)",
		"1:42: undeclared reference to 'y' (" + seen + ")",
		"1:68: undefined field 'nothing' (a task has exitCode, stdout, stderr, state, output, artifacts and result, an artifact size, files and digest; workflow has name, runId, context and input)",
		"1:114: the expression ends too early",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
