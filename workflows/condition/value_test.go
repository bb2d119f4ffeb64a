package condition

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// fanned returns sample with a parent `each` that fanned out, another whose instances left nothing, and an input of the task.
func fanned(t testing.TB) View {
	view := sample(t)
	list, err := structpb.NewList([]any{map[string]any{"size": 10}, nil, map[string]any{"size": 30}})
	if err != nil {
		t.Fatal(err)
	}
	view.Parents["each"] = &historyv1.ParentView{State: "completed", Result: &v1.TaskResult{ExitCode: 3}, FanOut: &historyv1.FanOutView{
		Count: 3, Completed: 2, Failed: 1, Outputs: &historyv1.Items{List: list},
	}}
	view.Parents["quiet"] = &historyv1.ParentView{State: "completed", FanOut: &historyv1.FanOutView{Count: 2, Completed: 2}}
	view.Parents["vast"] = &historyv1.ParentView{FanOut: &historyv1.FanOutView{Count: 2, Error: "the outputs are larger than 8 MiB"}}
	view.Input = jsonObject(t, map[string]any{"item": map[string]any{"name": "a.go"}, "index": 3, "count": 10, "mode": "fast"})
	return view
}

// asJSON returns a value as compact JSON.
func asJSON(t *testing.T, v *structpb.Value) string {
	t.Helper()
	b, err := protojson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), " ", "") // protojson varies its blanks
}

func TestValue(t *testing.T) {
	tests := map[string]string{
		"'text'":                                 `"text"`,
		" 1 + 2 ":                                "3",
		"1.5":                                    "1.5",
		"9007199254740993":                       `"9007199254740993"`,
		"7u":                                     "7",
		"18446744073709551615u":                  `"18446744073709551615"`,
		"string(input.count * 100000.0)":         `"1000000"`,
		"string(123456789012.0) + string(7)":     `"1234567890127"`,
		"string(dyn(0.25)) + string(1e300)":      `"0.251e+300"`,
		"'%s %s'.format([1000000.0, 0.5])":       `"10000000.5"`, // asJSON removes blanks
		"true":                                   "true",
		"null":                                   "null",
		"b'abc'":                                 `"YWJj"`,
		"duration('90s')":                        `"90s"`,
		"timestamp('2026-01-02T03:04:05Z')":      `"2026-01-02T03:04:05Z"`,
		"[1, 'a', [null, 2.0]]":                  `[1,"a",[null,2]]`,
		"{'a': {1: true}}":                       `{"a":{"1":true}}`,
		"parent.build.output.files":              `["a.go","b.go"]`,
		"parent.build.output.files + ['c']":      `["a.go","b.go","c"]`,
		"parent.build.output.nested":             `{"key":"v"}`,
		"build.files":                            `["a.go","b.go"]`,
		"build['files'][1]":                      `"b.go"`,
		"build.files.map(f, f + 'x')":            `["a.gox","b.gox"]`,
		"[1].map(build, build + 1)":              `[2]`,
		"[{'files': 1}].map(build, build.files)": `[1]`,
		"[0].map(i, build.files[i])":             `["a.go"]`,
		"has(build.files) && !has(build.nope)":   "true",
		"build.nested.key":                       `"v"`,
		"build[workflow.context.env + 'x'] == 1 || true":     "true",
		"workflow.input.dry":                                 "false",
		"input.item.name":                                    `"a.go"`,
		"input.index + 1.0":                                  "4",
		"input.mode":                                         `"fast"`,
		"parent.each.outputs":                                `[{"size":10},null,{"size":30}]`,
		"parent.each.outputs[2].size":                        "30",
		"parent.each.outputs.filter(o, o != null).size()":    "2",
		"parent.each.count":                                  "3",
		"parent.each.completed + parent.each.failed":         "3",
		"parent.each.exitCode":                               "3",
		"parent.quiet.outputs":                               `[{},{}]`,
		"has(parent.each.count) && !has(parent.build.count)": "true",
		"has(dyn(parent.each).outputs)":                      "true",
		"parent.exists(t, has(parent[t].outputs))":           "true",
		"type(parent.build.exitCode) == int ? int('4') : 0":  "4",
		"strings.quote('x')":                                 `"\"x\""`,
		"math.greatest(1, build.count)":                      "3",
		"parent.build.exitCode === 0 ? 'ok' : 'bad'":         `"ok"`,
		"/^a/.test(build.files[0])":                          "true",
		"/A/gi.test(/a/.test('a') ? 'b' : 'ca')":             "false",
		"!/x'\\d/ims.test(string(('X\\'1')))":                "false",
		"'===' + \"!==\" // ===":                             `"===!=="`,
		"[8.0][0] / 2.0 / (2.0) / 2.0 / 1.0":                 "1",
		"{'includes': 1}.includes":                           "1",
		"true ?.5 : 2.0":                                     "0.5",
		"parent['notify-failure'].output":                    "{}",
	}
	e, view := NewEvaluator(), fanned(t)
	for expr, want := range tests {
		got, err := e.Value(t.Context(), expr, view)
		if err != nil {
			t.Errorf("Value(%q): %v", expr, err)
			continue
		}
		if text := asJSON(t, got); text != want {
			t.Errorf("Value(%q) = %s, want %s", expr, text, want)
		}
	}
}

func TestValueErrors(t *testing.T) {
	tests := map[string]string{
		"":                         "there is no expression",
		"parent.build":             "choose one of its fields",
		"[parent.build]":           "choose one of its fields",
		"workflow":                 "choose one of its fields",
		"type(1)":                  "must be text",
		"0.0 / 0.0":                "JSON does not have",
		"parent.build.count":       "did not fan out",
		"parent.build.outputs":     "did not fan out",
		"dyn(parent.build).failed": "did not fan out",
		"parent.vast.outputs":      "larger than 8 MiB",
		"attempt.exitCode":         "undeclared reference to 'attempt'",
		"gone.files":               "parent 'gone' is unknown",
		"build":                    "undeclared reference to 'build'",
		"build.size()":             "undeclared reference to 'build'",
		"[[1]]" + strings.Repeat(".map(x, [x, x, x, x])", 12): "larger than 8 MiB",
	}
	e, view := NewEvaluator(), fanned(t)
	for expr, want := range tests {
		got, err := e.Value(t.Context(), expr, view)
		if got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Value(%q) = %v, %v; want %q", expr, got, err, want)
		}
	}
}

func TestCount(t *testing.T) {
	e, view := NewEvaluator(), fanned(t)
	for expr, want := range map[string]int{
		"0": 0, "3": 3, "3u": 3, "3.0": 3, "build.count": 3, "parent.each.count": 3, "size(build.files)": 2, "100000": 100000,
		"int('7')": 7, "build.count * 2.0": 6,
	} {
		if got, err := e.Count(t.Context(), expr, view); err != nil || got != want {
			t.Errorf("Count(%q) = %v, %v; want %d", expr, got, err, want)
		}
	}
	for expr, want := range map[string]string{
		"-1":          "negative: -1",
		"2.5":         "2.5, which is not an integer",
		"1000000.5":   "is 1000000.5, which is not an integer",
		"build.ratio": "0.5, which is not an integer",
		"100001":      "100001 instances are more than 100000",
		"1.0e300":     "instances are more than",
		"1.0 / 0.0":   "not an integer",
		"0.0 / 0.0":   "not an integer",
		"build.text":  `parallel must be an integer; this one is of type string: "t"; key=value outputs are texts: write int(x), or write the output as a JSON object`,
		"build.files": `parallel must be an integer; this one is of type list: ["a.go","b.go"]`,
		"build.none":  "parallel must be an integer; this one is of type null_type: null",
		"'3'":         "parallel must be an integer; this one is of type string",
		"input.count": "undeclared reference to 'input'",
		"build.nope":  "no such key: nope",
		"parent.test.stderr.split('').map(x, x + x)": "",
	} {
		got, err := e.Count(t.Context(), expr, view)
		if got != 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Count(%q) = %v, %v; want %q", expr, got, err, want)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("Count(%q): an error of %d bytes", expr, len(err.Error()))
		}
	}
}

func TestItems(t *testing.T) {
	e, view := NewEvaluator(), fanned(t)
	many := &structpb.ListValue{}
	for range MaxInstances {
		many.Values = append(many.Values, structpb.NewNumberValue(1))
	}
	view.Workflow.Context.Fields["many"] = structpb.NewListValue(many)
	for expr, want := range map[string]int{
		"[]": 0, "[1, 'a']": 2, "build.files": 2, "parent.each.outputs": 3, "'a,b,c'.split(',')": 3, "workflow.context.many": MaxInstances,
		"build.nested.map(k, k)": 1,
	} {
		if got, err := e.Items(t.Context(), expr, view); err != nil || len(got.GetValues()) != want {
			t.Errorf("Items(%q) = %d items, %v; want %d", expr, len(got.GetValues()), err, want)
		}
	}
	for expr, want := range map[string]string{
		"build.text":                  `foreach must be a list; this one is of type string: "t"; key=value outputs are texts: write lines(x), json(x) or x.split(separator), or write the output as a JSON object`,
		"build.nested":                `foreach must be a list; this one is of type map: {"key":"v"}`,
		"build.none":                  "of type null_type: null",
		"3":                           "foreach must be a list; this one is of type int",
		"parent.build.stdout":         "foreach must be a list; this one is of type string",
		"workflow.context.many + [1]": "the list has 100001 items",
		"[parent.build]":              "choose one of its fields",
	} {
		got, err := e.Items(t.Context(), expr, view)
		if got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Items(%q) = %v, %v; want %q", expr, got, err, want)
		}
	}
}

func TestKey(t *testing.T) {
	e, view := NewEvaluator(), fanned(t)
	for expr, want := range map[string]string{
		"'v1'": "v1", "1": "1", "1.0": "1", "true": "true", "[1, 'a']": `[1,"a"]`, "{'b': 1, 'a': [2.0]}": `{"a":[2],"b":1}`,
		"workflow.input.dry": "false", "build.version + '-' + input.mode": "1.2.3-fast", "{'k': '<&>'}": `{"k":"<&>"}`,
	} {
		if got, err := e.Key(t.Context(), expr, view); err != nil || got != want {
			t.Errorf("Key(%q) = %q, %v; want %q", expr, got, err, want)
		}
	}
	for expr, want := range map[string]string{
		"build.none": "a cache key must be text", "null": "a cache key must be text", "parent.build": "choose one of its fields", "": "there is no expression", "''": "the key is empty",
	} {
		if got, err := e.Key(t.Context(), expr, view); got != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Key(%q) = %q, %v; want %q", expr, got, err, want)
		}
	}
}

func TestRetry(t *testing.T) {
	e := NewEvaluator()
	view := View{Workflow: sample(t).Workflow, Attempt: &historyv1.AttemptView{Number: 2, State: "failed", Reason: "exit_code", Result: &v1.TaskResult{
		ExitCode: 75, Stdout: "out", Stderr: "connection reset",
	}}}
	for expr, want := range map[string]bool{
		"":  true,
		" ": true,
		"attempt.exitCode == 75 && attempt.stderr.includes('reset')":                  true,
		"attempt.reason === 'timeout'":                                                false,
		"attempt.number < 2 || attempt.state == 'killed_oom'":                         false,
		"workflow.context.env == 'prod' && attempt.stdout == 'out'":                   true,
		"!attempt.stdoutTruncated && has(attempt.stderr) && !attempt.stderrTruncated": true,
	} {
		if got, err := e.Retry(t.Context(), expr, view); err != nil || got != want {
			t.Errorf("Retry(%q) = %v, %v; want %v", expr, got, err, want)
		}
	}
	for expr, want := range map[string]string{
		"attempt.exitcode == 1":      "undefined field",
		"attempt.exitCode":           "retry.when must be true or false; this one is of type int",
		"parent.build.exitCode == 0": "undeclared reference to 'parent'",
		"input.x == 1":               "undeclared reference to 'input'",
		"workflow.context.env":       `retry.when must be true or false; this one is of type string: "prod"`,
	} {
		if got, err := e.Retry(t.Context(), expr, view); got || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Retry(%q) = %v, %v; want %q", expr, got, err, want)
		}
	}
	if got, err := e.Retry(t.Context(), "attempt.exitCode == -1 && attempt.stderr == ''", View{}); !got || err != nil {
		t.Errorf("of an attempt that never ran: %v, %v", got, err)
	}
}

func TestText(t *testing.T) {
	for want, value := range map[string]*structpb.Value{
		"":                      structpb.NewNullValue(),
		"a\nb":                  structpb.NewStringValue("a\nb"),
		"3":                     structpb.NewNumberValue(3),
		"0":                     structpb.NewNumberValue(math.Copysign(0, -1)),
		"-2.5":                  structpb.NewNumberValue(-2.5),
		"100000000000000000000": structpb.NewNumberValue(1e20),
		"1e+21":                 structpb.NewNumberValue(1e21),
		"true":                  structpb.NewBoolValue(true),
		`["<a>",null]`:          structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("<a>"), structpb.NewNullValue()}}),
	} {
		if got := Text(value); got != want {
			t.Errorf("Text(%v) = %q, want %q", value, got, want)
		}
	}
	if got := Text(nil); got != "" {
		t.Errorf("Text(nil) = %q", got)
	}
	if got := Shown(structpb.NewStringValue(strings.Repeat("é", 1000))); len(got) > maxShown+10 || !strings.HasSuffix(got, "...") && !strings.HasSuffix(got, `..."`) {
		t.Errorf("Shown is %q", got)
	}
}
