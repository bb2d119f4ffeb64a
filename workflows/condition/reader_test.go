package condition

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// printed returns a view of a task that printed a text and wrote it as the output text=.
func printed(text string) View {
	return View{
		Parents: map[string]*historyv1.ParentView{"list": {State: v1.TaskCompleted, Result: &v1.TaskResult{
			Stdout: text, Output: &structpb.Struct{Fields: map[string]*structpb.Value{"text": structpb.NewStringValue(text)}},
		}}},
		Workflow: &historyv1.WorkflowView{},
	}
}

func TestTextsDriveEveryKindOfExpression(t *testing.T) {
	e := NewEvaluator()
	for _, field := range []string{"parent.list.stdout", "parent.list.output.text"} {
		view := printed(`{"hosts": ["a", "b"], "count": 3, "ok": true, "id": 9007199254740992}` + "\n")
		if list, err := e.Items(t.Context(), "json("+field+").hosts", view); err != nil || Text(structpb.NewListValue(list)) != `["a","b"]` {
			t.Errorf("items %v, error %v", list, err)
		}
		if count, err := e.Count(t.Context(), "json("+field+").count", view); err != nil || count != 3 {
			t.Errorf("count %d, error %v", count, err)
		}
		if ok, err := e.Evaluate(t.Context(), "json("+field+").ok && json("+field+").hosts.exists(h, h == 'b')", view); err != nil || !ok {
			t.Errorf("condition %v, error %v", ok, err)
		}
		if value, err := e.Value(t.Context(), "json("+field+").id", view); err != nil || Text(value) != "9007199254740992" {
			t.Errorf("value %v, error %v", value, err)
		}
		if list, err := e.Items(t.Context(), "lines("+field+")", printed("a b\r\n\nc")); err != nil || Text(structpb.NewListValue(list)) != `["a b","","c"]` {
			t.Errorf("lines %v, error %v", list, err)
		}
	}
	for text, want := range map[string]string{"": `[]`, "\n": `[""]`, "a\n": `["a"]`, "a\n\n": `["a",""]`, "a\rb": `["a\rb"]`} {
		if list, err := e.Items(t.Context(), "lines(parent.list.stdout)", printed(text)); err != nil || Text(structpb.NewListValue(list)) != want {
			t.Errorf("lines of %q are %v, want %s, error %v", text, list, want, err)
		}
	}
	if list, err := e.Items(t.Context(), "lines(parent.list.stdout).map(l, json(l))", printed("{\"a\": 1}\n[2]\n")); err != nil || Text(structpb.NewListValue(list)) != `[{"a":1},[2]]` {
		t.Errorf("%v, error %v", list, err)
	}
}

func TestTextsThatAreNotExactJSONAreRefused(t *testing.T) {
	e := NewEvaluator()
	for text, want := range map[string]string{
		`{"a": 9007199254740993}`: "a: 9007199254740993 cannot be kept exactly",
		`1e400`:                   "out of the range of numbers",
		`{"a": 1, "a": 2}`:        "a: duplicate key",
		"":                        "the text is empty",
		" \n":                     "the text is empty",
		"{\"a\": 1\n":             "the text is not JSON: unexpected end of JSON input in line",
		"{\n  a: 1}":              "the text is not JSON: invalid character 'a' looking for beginning of object key string in line 2",
		"{}\n{}\n":                "lines(x).map(line, json(line))",
		"[" + strings.Repeat("1,", 600_000) + "1]":          "cost",
		strings.Repeat("[", 101) + strings.Repeat("]", 101): "nests more than 100 levels",
		"heads": "the text is not JSON: invalid character 'h'",
	} {
		value, err := e.Value(t.Context(), " json(parent.list.stdout)", printed(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "evaluate template: ") {
			t.Errorf("%.40s: %v, error %.300v, want %q", text, value, err, want)
		}
	}
	if _, err := e.Value(t.Context(), "json(parent.list.output)", printed("{}")); err == nil || !strings.Contains(err.Error(), "no such overload") {
		t.Errorf("an object is read as JSON, error %v", err)
	}
}

func TestHintsNameTheReadersOfTexts(t *testing.T) {
	scope := Scope{Kind: Items, Task: "each", Ancestors: []string{"list", "list-files"}, Tasks: []string{"each", "list", "list-files"}}
	for expr, want := range map[string]string{
		"parent.list.stdout":              "lines(x) makes a list of its lines, json(x) reads a list from JSON",
		"parent.list.stdout.lines()":      "it is called as lines(x)",
		"fromJSON(parent.list.stdout)":    "json(x)",
		"JSON.parse(parent.list.stdout)":  "json(x)",
		"parent.list.stdout.splitlines()": "lines(x)",
		"list.xs":                         "write parent.list.output.xs",
		"list-files.names":                "write parent['list-files'].output.names",
	} {
		if _, err := Check(expr, scope); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
	if found := Doubts("parent.build.stdout.split('\\n')", expectation(Items)); len(found) != 1 || found[0].Hint != "write lines(parent.build.stdout)" {
		t.Errorf("split: %v", found)
	}
}
