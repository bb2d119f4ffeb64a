package condition

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func readView(t *testing.T) View {
	t.Helper()
	object := func(fields map[string]any) *structpb.Struct {
		s, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return View{
		Parents: map[string]*historyv1.ParentView{
			"a":      {State: "completed", Result: &v1.TaskResult{Stdout: strings.Repeat("x", 64<<10), Output: object(map[string]any{"n": "x", "list": []any{1, 2}})}},
			"run-it": {State: "failed", Result: &v1.TaskResult{ExitCode: 3}},
			"each":   {State: "completed", FanOut: &historyv1.FanOutView{Count: 50_000}},
		},
		Workflow: &historyv1.WorkflowView{Name: "w", Input: object(map[string]any{"branch": "main", "input": "i"})},
	}
}

func TestFalseConditionShowsWhatItRead(t *testing.T) {
	e, view := NewEvaluator(), readView(t)
	for expr, want := range map[string]string{
		"parent['run-it'].exitCode == 0 &&\n  parent.a.output.n == 'y'": "`parent['run-it'].exitCode == 0 && parent.a.output.n == 'y'` is false: " +
			`parent['run-it'].exitCode is 3, parent.a.output.n is "x"`,
		"workflow.input.branch == 'dev' || workflow.input['branch'] == 'x'": "`workflow.input.branch == 'dev' || workflow.input['branch'] == 'x'` is false: workflow.input.branch is \"main\"",
		"parent.a.output.list[1] == 1.0":                                    "`parent.a.output.list[1] == 1.0` is false: parent.a.output.list[1] is 2",
		"has(parent.a.output.gone)":                                         "`has(parent.a.output.gone)` is false: parent.a.output is {\"list\":[1,2],\"n\":\"x\"}",
		"parent.a.output.list.exists(input, input == 7.0)":                  "`parent.a.output.list.exists(input, input == 7.0)` is false: parent.a.output.list is [1,2]",
		"parent.all(t, parent[t].exitCode == 0)":                            "`parent.all(t, parent[t].exitCode == 0)` is false",
		"[parent.a.result.exitCode, 2].size() == 3":                         "`[parent.a.result.exitCode, 2].size() == 3` is false: parent.a.result.exitCode is 0",
		"{'k': parent.a.state}['k'] == workflow.name":                       "`{'k': parent.a.state}['k'] == workflow.name` is false: parent.a.state is \"completed\", workflow.name is \"w\"",
		"parent.a.stdout.contains('0 failures')":                            "`parent.a.stdout.contains('0 failures')` is false: parent.a.stdout is \"" + strings.Repeat("x", maxShown) + "...\"",
		"parent.each.outputs.size() == 1 && parent.each.count == 1": "`parent.each.outputs.size() == 1 && parent.each.count == 1` is false: " +
			"parent.each.outputs is a list that is too large to show, parent.each.count is 50000",
		"false": "`false` is false",
	} {
		if ok, err := e.Evaluate(t.Context(), expr, view); ok || err != nil {
			t.Errorf("%s is %v, %v", expr, ok, err)
		}
		if got := e.Because(expr, view); got != want {
			t.Errorf("Because(%q)\n got %s\nwant %s", expr, got, want)
		}
	}
}

func TestConditionErrorShowsExpressionAndValue(t *testing.T) {
	e, view := NewEvaluator(), readView(t)
	for expr, want := range map[string]string{
		"int(parent.a.output.n) > 3":     "`int(parent.a.output.n) > 3` cannot be evaluated: 1:4: type conversion error from 'string' to 'int'; parent.a.output.n is \"x\"",
		"parent.a.output.gone == 'x'":    "`parent.a.output.gone == 'x'` cannot be evaluated: 1:16: no such key: gone; parent.a.output is {\"list\":[1,2],\"n\":\"x\"}",
		"parent.a.output.n":              "`parent.a.output.n` cannot be evaluated: a condition must be true or false; this one is of type string: \"x\"",
		"parent.a.output.list[7] == 1.0": "`parent.a.output.list[7] == 1.0` cannot be evaluated: 1:21: index out of bounds: 7; parent.a.output.list is [1,2]",
	} {
		if _, err := e.Evaluate(t.Context(), expr, view); err == nil || err.Error() != want {
			t.Errorf("Evaluate(%q)\n got %v\nwant %s", expr, err, want)
		}
	}
}

func TestReadValuesAreBounded(t *testing.T) {
	var expr []string
	for range 10 {
		for _, field := range []string{"exitCode == 1", "stdout == ''", "state == 'failed'", "output.n == 'y'", "output.list == []", "result.stdout == ''", "result.state == 'failed'", "stdoutTruncated", "stderr == 'x'"} {
			expr = append(expr, "parent.a."+field)
		}
	}
	got := NewEvaluator().Because(strings.Join(expr, " || "), readView(t))
	if len(got) > maxShownExpression+maxReadBytes+40 || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
