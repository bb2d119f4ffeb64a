package condition

import (
	"errors"
	"slices"
	"testing"
)

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
		"1:68: undefined field 'nothing' (a task has exitCode, stdout, stderr, state, output and result; workflow has name, runId, context and input)",
		"1:114: the expression ends too early",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
