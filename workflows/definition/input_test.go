package definition

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

const withInputs = `
name: a
inputs:
  version: { default: 1.10, enum: [1.10, no, "next"] }
  count: { type: integer, default: 3 }
  ratio: { type: number }
  fast: { type: boolean, default: false }
  hosts: { type: list, default: [a, 1.5] }
  labels: { type: object }
  who: { required: true, description: the name of a person }
tasks: { a: { type: approval } }
`

// TestInput checks that a run gets the given values and the defaults of the others.
func TestInput(t *testing.T) {
	def := parse(t, "a.yaml", withInputs)
	got, err := Input(def, spec(t, map[string]any{"who": "me", "count": 4, "ratio": nil, "labels": map[string]any{"x": 1}}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"version": "1.10", "count": 4.0, "fast": false, "hosts": []any{"a", 1.5}, "labels": map[string]any{"x": 1.0}, "who": "me",
	}
	if diff := cmp.Diff(want, got.AsMap()); diff != "" {
		t.Error(diff)
	}
	if got, err := Input(&v1.Definition{}, nil); got != nil || err != nil {
		t.Errorf("without inputs: %v, %v", got, err)
	}
	free := spec(t, map[string]any{"anything": 1})
	if got, err := Input(&v1.Definition{}, free); got != free || err != nil {
		t.Errorf("without inputs: %v, %v", got, err)
	}
}

// TestInputProblems checks that all problems of an input are reported at once.
func TestInputProblems(t *testing.T) {
	_, err := Input(parse(t, "a.yaml", withInputs), spec(t, map[string]any{
		"version": "2", "count": 1.5, "ratio": "high", "fast": 1, "hosts": "a", "labels": []any{}, "hots": 1, "unlike_any": 1,
	}))
	want := `input.count: input.count is the number 1.5; it must be a whole number
input.fast: input.fast is the number 1; it must be true or false
input.hosts: input.hosts is the string "a"; it must be a list
input.hots: there is no input "hots"
  did you mean hosts?
input.labels: input.labels is a list; it must be a mapping
input.ratio: input.ratio is the string "high"; it must be a number
input.unlike_any: there is no input "unlike_any"
  known names: count, fast, hosts, labels, ratio, version, who
input.version: input.version is the string "2"; it must be 1.10, no or next
input.who: input who is missing
  the name of a person; give it with --input who=VALUE`
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

// TestManyUnknownInputs passes so many inputs that comparing each with each would take minutes.
func TestManyUnknownInputs(t *testing.T) {
	const n = 20_000
	def := &v1.Definition{Inputs: map[string]*v1.InputDefinition{}}
	given := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i := range n {
		def.Inputs["input-"+strconv.Itoa(i)] = &v1.InputDefinition{}
		given.Fields["given-"+strconv.Itoa(i)] = structpb.NewStringValue("x")
	}
	given.Fields["Input_7"] = structpb.NewStringValue("x")
	_, err := Input(def, given)
	if err == nil || !strings.Contains(err.Error(), "did you mean input-7?") || !strings.Contains(err.Error(), "more problems") {
		t.Errorf("%.500v", err)
	}
}

// TestParseInput checks that a text is read as the type of its input demands, and as JSON or plain text if no input is
// declared.
func TestParseInput(t *testing.T) {
	def := parse(t, "a.yaml", withInputs)
	got, err := ParseInput(def, []string{
		"version=1.10", "count=4", "ratio=0.5", "fast=true", `hosts=["a", b, 1.50]`, "labels={x: 1, y: [2]}", "who=a=b", "other=[1, 2]", "id=12345678901234567890",
	}, []byte("count: 9\nwho: 007\nunset: [true, null]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"version": "1.10", "count": 4.0, "ratio": 0.5, "fast": true, "hosts": []any{"a", "b", 1.5}, "labels": map[string]any{"x": 1.0, "y": []any{2.0}},
		"who": "a=b", "other": []any{1.0, 2.0}, "id": "12345678901234567890", "unset": []any{true, nil},
	}
	if diff := cmp.Diff(want, got.AsMap()); diff != "" {
		t.Error(diff)
	}
	got, err = ParseInput(def, nil, []byte(`{"who": 1.10}`))
	if err != nil || got.GetFields()["who"].GetStringValue() != "1.10" {
		t.Errorf("a file: %v, %v", got, err)
	}
	if got, err := ParseInput(nil, nil, nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
	for text, want := range map[string]*structpb.Value{
		"5": structpb.NewNumberValue(5), "true": structpb.NewBoolValue(true), "null": structpb.NewNullValue(), `"5"`: structpb.NewStringValue("5"),
		"": structpb.NewStringValue(""), "x y": structpb.NewStringValue("x y"), "[1": structpb.NewStringValue("[1"), "1e999": structpb.NewStringValue("1e999"),
	} {
		got, err := ParseInput(nil, []string{"a=" + text}, nil)
		if err != nil || !cmp.Equal(got.GetFields()["a"].AsInterface(), want.AsInterface()) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

func TestParseInputWarnsOfTextsThatDoNotComeBack(t *testing.T) {
	def := parse(t, "a.yaml", "name: a\ninputs: { s: { default: x }, n: { type: number }, l: { type: list } }\ntasks: { a: { type: shell, spec: { command: x } } }")
	pairs := []string{"s=3.10", "n=1.0", "l=[1, 3.10]", "version=3.10", "id=007", "list=[1.0]", "date=2026-03-14"}
	input, warnings, err := ParseInputChecked(def, pairs, []byte("v: 1.10\nw: [007]\nx: yes"))
	if err != nil {
		t.Fatal(err)
	}
	got := words(warnings, (*v1.Problem).GetMessage)
	want := []string{
		"input.l[1] is the number 3.10, which tasks find as 3.1", "input.list[0] is the number 1.0, which tasks find as 1",
		"input.v is the number 1.10, which tasks find as 1.1", "input.version is the number 3.10, which tasks find as 3.1",
		"input.w[0] is the number 007, which tasks find as 7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"s": "3.10", "id": "007", "date": "2026-03-14", "x": "yes"} {
		if text := input.GetFields()[name].GetStringValue(); text != want {
			t.Errorf("%s is %q, want %q", name, text, want)
		}
	}
}

func TestParseInputProblems(t *testing.T) {
	def := parse(t, "a.yaml", withInputs)
	_, err := ParseInput(def, []string{"count=many", "fast=yes", "hosts=[a", "labels=", "=x", "noise", "ratio=[]", "who=me", "who=you"}, nil)
	if err == nil {
		t.Fatal("accepted")
	}
	want := `input: "=x" is not an input
  write key=value
input: "noise" is not an input
  write key=value
input.count: input.count is the string "many"; it must be a whole number
input.fast: input.fast is the string "yes"; it must be true or false
`
	if got := err.Error(); !strings.HasPrefix(got, want) || !strings.Contains(got, `input.hosts is "[a", which cannot be read: `) ||
		!strings.Contains(got, `input.labels is "", which cannot be read: `) || !strings.Contains(got, "input.ratio is a list; it must be a number") || !strings.Contains(got, "input.who: input who is given twice") {
		t.Errorf("%v", err)
	}
	if _, err := ParseInput(def, []string{"count=9007199254740993"}, nil); err == nil || !strings.Contains(err.Error(), "cannot be kept exactly") {
		t.Errorf("a number that would be rounded: %v", err)
	}
	for document, want := range map[string]string{"[a]": "input:1:1: an input is a mapping", "a: 1\na: 2": "input:2:1: ", "{": "input:1:"} {
		if _, err := ParseInput(def, nil, []byte(document)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", document, err)
		}
	}
}
