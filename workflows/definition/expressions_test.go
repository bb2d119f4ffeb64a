package definition

import (
	"errors"
	"os"
	"strings"
	"testing"

	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
)

// TestEveryBadConditionIsReportedAtItsPosition checks that every bad condition is reported once, at the position that package
// condition reports, however the condition is written.
func TestEveryBadConditionIsReportedAtItsPosition(t *testing.T) {
	data, err := os.ReadFile("testdata/conditions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := &source.Report{}
	tree := r.Read(data)
	d := newDocument(&decoder{Report: r}, new([]StoredReference))
	def, _ := d.read(tree)
	_, err = Parse("conditions.yaml", data)
	problems, _ := errors.AsType[source.Problems](err)
	tasks := []string{"plain", "single", "double", "block", "fold", "syntax", "minus", "number", "self"}
	if len(problems) != len(tasks) {
		t.Fatalf("%d problems:\n%v", len(problems), err)
	}
	for i, task := range tasks {
		p := problems[i]
		if p.GetPath() != "tasks."+task+".condition" || !strings.HasPrefix(p.GetMessage(), "condition: ") {
			t.Errorf("%s: %v", task, p)
		}
		expression := def.GetTasks()[task].GetCondition()
		_, err := condition.Check(expression, condition.Scope{Task: task, Ancestors: ancestorsIn(def, task), Tasks: Order(def)})
		bad, ok := errors.AsType[*condition.Error](err)
		if !ok {
			t.Fatalf("%s: %v", task, err)
		}
		snippet := strings.Split(p.GetSnippet(), "\n")
		if task == "fold" {
			// The line of the document differs from that of the expression, so CEL's rendering is used.
			if p.GetLine() != 33 || p.GetColumn() != 7 || !strings.Contains(snippet[0], "parent.nope") {
				t.Errorf("%s: %v", task, p)
			}
			continue
		}
		under := []rune(strings.Split(expression, "\n")[bad.Line-1])[bad.Column-1:]
		if got := []rune(snippet[0])[strings.Index(snippet[1], "^"):]; !strings.HasPrefix(string(got), string(under)) {
			t.Errorf("%s: the mark is not under %q:\n%s", task, string(under), p.GetSnippet())
		}
	}
}

// TestPositionsInValuesMapToTheDocument checks that a position in a value maps to the document for every way to write the
// value.
func TestPositionsInValuesMapToTheDocument(t *testing.T) {
	for name, document := range map[string]string{
		"plain":            `v: é one HERE two`,
		"single":           `v: 'it''s HERE'`,
		"double":           `v: "a\tb\x41\u00e9\U0001F600 \"HERE\""`,
		"double two lines": `v: "a\n\nHERE"`,
		"nested":           `v: [1, {x: "\\ HERE"}]`,
		"literal":          "v: |\n\n   a\n     b HERE\n",
		"literal indented": "v:\n  - |2-\n      HERE\n",
		"json":             `{"v": "\/\ud83d\ude00\u00e9 HERE"}`,
	} {
		r := &source.Report{}
		tree := r.Read([]byte(document))
		if tree == nil {
			t.Fatalf("%s: %v", name, r.Kept)
		}
		n := holder(tree)
		at, exact := r.Lines.Inside(n, source.OffsetOf(n.Text, strings.Index(n.Text, "HERE")))
		if !exact || !strings.HasPrefix(string([]rune(r.Lines.Line(at.Line))[at.Column-1:]), "HERE") {
			t.Errorf("%s: %v, exact %v", name, at, exact)
		}
	}
	for name, document := range map[string]string{
		"folded": "v: >\n  a\n  HERE", "two lines": "v: 'a\n  HERE'", "plain two lines": "v: a\n  HERE", "anchor": "v: &a 'x HERE'",
	} {
		r := &source.Report{}
		n := holder(r.Read([]byte(document)))
		if at, exact := r.Lines.Inside(n, source.OffsetOf(n.Text, strings.Index(n.Text, "HERE"))); exact || at.Line == 0 {
			t.Errorf("%s: %v, exact %v", name, at, exact)
		}
	}
}

// holder returns the node whose text contains HERE.
func holder(n *source.Node) *source.Node {
	if strings.Contains(n.Text, "HERE") {
		return n
	}
	for _, item := range n.Items {
		if found := holder(item); found != nil {
			return found
		}
	}
	for _, e := range n.Entries {
		if found := holder(e.Value); found != nil {
			return found
		}
	}
	return nil
}

// TestConditionIsNotBlamedForOtherProblems checks that a problem in dependencies is not reported a second time as a condition
// that reads no ancestor.
func TestConditionIsNotBlamedForOtherProblems(t *testing.T) {
	for _, dependsOn := range []string{"dependsOn: [biuld]", "needs: [build]", "dependsOn: [[build]]", "dependsOn: {build: 1}"} {
		_, err := Parse("a.yaml", []byte("name: a\ntasks:\n  build: {type: shell, spec: {command: x}}\n"+
			"  test: {type: shell, spec: {command: x}, condition: parent.build.exitCode == 0, "+dependsOn+"}\n"))
		if problems, _ := errors.AsType[source.Problems](err); len(problems) != 1 {
			t.Errorf("%s: %v", dependsOn, err)
		}
	}
}
