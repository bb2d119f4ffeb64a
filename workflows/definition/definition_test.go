package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

func parse(t testing.TB, file, document string) *v1.Definition {
	t.Helper()
	def, err := Parse(file, []byte(document))
	if err != nil {
		t.Fatalf("not accepted:\n%v\n%s", err, document)
	}
	return def
}

// check returns the problems of a definition, or nil.
func check(def *v1.Definition) error {
	_, err := Complete(def)
	return err
}

func goodFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/good/*.[yj]*")
	if err != nil || len(files) < 4 {
		t.Fatalf("files %v, error %v", files, err)
	}
	return files
}

// TestGoodDocuments compares the meaning of good documents with golden files, and checks that YAML, JSON and messages mean the
// same.
func TestGoodDocuments(t *testing.T) {
	for _, file := range goodFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			def := parse(t, file, string(data))
			golden.Check(t, filepath.Join("testdata/meaning", filepath.Base(file)+".golden"), canonicalJSON(t, def))

			var free any
			if err := yaml.Unmarshal(data, &free); err != nil {
				t.Fatal(err)
			}
			asJSON, err := json.Marshal(free)
			if err != nil {
				t.Fatal(err)
			}
			if again := parse(t, "again.json", string(asJSON)); !sameButNumberText(def, again) {
				t.Errorf("JSON means something else:\n%s", cmp.Diff(def, again, protocmp.Transform()))
			}
			if err := check(def); err != nil {
				t.Errorf("Check refuses it: %v", err)
			}
		})
	}
}

// sameButNumberText compares two definitions, ignoring the text of a number, "1.50", that a JSON encoder rewrites.
func sameButNumberText(a, b *v1.Definition) bool {
	a, b = proto.CloneOf(a), proto.CloneOf(b)
	for _, def := range []*v1.Definition{a, b} {
		for _, task := range def.GetTasks() {
			delete(task.GetEnv(), "RATIO")
		}
	}
	return proto.Equal(a, b)
}

// canonicalJSON returns JSON indented by encoding/json, because protojson varies its spaces.
func canonicalJSON(t *testing.T, def *v1.Definition) string {
	t.Helper()
	data, err := protojson.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	var free any
	if err := json.Unmarshal(data, &free); err != nil {
		t.Fatal(err)
	}
	data, err = json.MarshalIndent(free, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

func TestFormats(t *testing.T) {
	const flow = "{name: a, tasks: {b: {type: shell, spec: {command: x}}}}"
	asJSON := `{"name": "a", "tasks": {"b": {"type": "shell", "spec": {"command": "x"}}}}`
	want := parse(t, "", asJSON)
	for _, c := range []struct{ file, document string }{
		{"a.json", asJSON}, {"", "\n\t" + asJSON}, {"a.yaml", asJSON}, {"-", asJSON},
		{"a.yml", flow}, {"a.yaml", "\ufeff" + flow}, {"a.json", "\ufeff" + asJSON},
		{"a.yaml", strings.ReplaceAll("name: a\ntasks:\n  b:\n    type: shell\n    spec: { command: x }\n", "\n", "\r\n")},
	} {
		if got := parse(t, c.file, c.document); !proto.Equal(got, want) {
			t.Errorf("%s %q: %v", c.file, c.document, got)
		}
	}
	if _, err := Parse("a.json", []byte(flow)); err == nil {
		t.Error("YAML is accepted as JSON")
	}
}

// TestScalarsAreStringsWhereExpected checks which scalars count as strings.
func TestScalarsAreStringsWhereExpected(t *testing.T) {
	def := parse(t, "a.yaml", `
name: 2024
tasks:
  1: { type: shell, spec: { command: true }, env: { A: 1.50, B: 0x10, C: no, D: 2024-01-01, E: "" } }
  no: { type: shell, spec: { command: [sleep, 5] }, dependsOn: 1, condition: true, timeout: 0, priority: 2.0 }
`)
	one, no := def.GetTasks()["1"], def.GetTasks()["no"]
	want := map[string]string{"A": "1.50", "B": "0x10", "C": "no", "D": "2024-01-01", "E": ""}
	if diff := cmp.Diff(want, one.GetEnv()); diff != "" {
		t.Error(diff)
	}
	if def.GetName() != "2024" || no.GetCondition() != "true" || no.GetPriority() != 2 || no.GetDependsOn()[0] != "1" {
		t.Errorf("%v", def)
	}
	if got := one.GetSpec().AsMap()["command"]; got != "true" {
		t.Errorf("command is %#v", got)
	}
	if diff := cmp.Diff([]any{"sleep", "5"}, no.GetSpec().AsMap()["command"]); diff != "" {
		t.Error(diff)
	}
}

func TestLargeDocumentIsRefused(t *testing.T) {
	_, err := Parse("big.yaml", []byte("name: a\n"+strings.Repeat("#\n", 1<<19)))
	checkOnly(t, err, "big.yaml:1:1: the document is larger than 1 MiB\n  split the workflow or move data out of it")
}

func checkOnly(t *testing.T, err error, want string) {
	t.Helper()
	problems, ok := errors.AsType[source.Problems](err)
	if !ok || len(problems) != 1 || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestManyProblemsTakeBoundedSpaceAndTime checks that a document full of problems is handled in bounded space and time.
func TestManyProblemsTakeBoundedSpaceAndTime(t *testing.T) {
	var b strings.Builder
	b.WriteString("name: a\ntasks:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "  t%d: { typ: shell, dependsOn: [u%d] }\n", i, i)
	}
	start := time.Now()
	_, err := Parse("many.yaml", []byte(b.String()))
	problems, _ := errors.AsType[source.Problems](err)
	if len(problems) != source.MaxReported+1 || !strings.HasSuffix(problems[source.MaxReported].GetMessage(), "more problems") {
		t.Fatalf("%d problems, the last %v", len(problems), problems[len(problems)-1])
	}
	if problems[0].GetLine() != 3 {
		t.Errorf("the first is %v", problems[0])
	}
	if took := time.Since(start); took > generous {
		t.Errorf("took %v", took)
	}
}

// TestForeachIsBounded checks that a list with the maximum number of items is accepted, and that one more item is refused.
func TestForeachIsBounded(t *testing.T) {
	start := time.Now()
	document := func(items int) string {
		return "name: large\ntasks: { a: { type: shell, spec: { command: x }, foreach: [" + strings.Repeat("1,", items-1) + "1] } }"
	}
	def := parse(t, "large.yaml", document(MaxInstances))
	if fan, _ := Fan(def.GetTasks()["a"]); fan.Count != MaxInstances {
		t.Errorf("%d items", fan.Count)
	}
	_, err := Parse("large.yaml", []byte(document(MaxInstances+1)))
	if err == nil || !strings.HasPrefix(err.Error(), "large.yaml:2:59: foreach has 100001 items; it may have 100000") {
		t.Errorf("%.200v", err)
	}
	if took := time.Since(start); took > generous {
		t.Errorf("took %v", took)
	}
}

// TestTemplatesOfEveryTaskAreAccepted checks that a document whose tasks each have their own expressions is accepted, with
// their references.
func TestTemplatesOfEveryTaskAreAccepted(t *testing.T) {
	start := time.Now()
	def := parse(t, "large.yaml", templated(5000))
	references, err := References(def)
	if err != nil || len(references) != 5000 || references["task-4999"].GetTemplates()[0] != "task-4998" {
		t.Errorf("%d references, %v", len(references), err)
	}
	if took := time.Since(start); took > generous {
		t.Errorf("took %v", took)
	}
}

// generous is far longer than anything here takes on a busy machine with the race detector, and far shorter than quadratic work
// would take.
const generous = 2 * time.Minute

func largeDocument(tasks int) string {
	var b strings.Builder
	b.WriteString("name: large\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  task-%04d:\n    type: shell\n    spec: { command: 'make part-%d && echo done', workingDirectory: /src }\n    env: { PART: %d }\n    priority: 3\n    retry: { maxRetries: 2 }\n", i, i, i)
		if i > 0 {
			fmt.Fprintf(&b, "    dependsOn: [task-%04d]\n", i-1)
		}
	}
	return b.String()
}

func TestLargeDocument(t *testing.T) {
	start := time.Now()
	def := parse(t, "large.yaml", largeDocument(5000))
	if order := Order(def); len(order) != 5000 || order[4999] != "task-4999" {
		t.Errorf("%d tasks in order", len(order))
	}
	if took := time.Since(start); took > generous {
		t.Errorf("took %v", took)
	}
}

// templated returns a large document in which each task has its own expression.
func templated(tasks int) string {
	var b strings.Builder
	b.WriteString("name: large\ninputs: { release: { default: none } }\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  task-%04d:\n    type: shell\n    spec: { command: make part-%d }\n    env: { PART: '${{ workflow.input.release }}-%d'", i, i, i)
		if i > 0 {
			fmt.Fprintf(&b, ", FROM: \"${{ parent['task-%04d'].output.file }}\" }\n    dependsOn: [task-%04d]\n", i-1, i-1)
		} else {
			b.WriteString(" }\n")
		}
	}
	return b.String()
}

func BenchmarkParse(b *testing.B) {
	for name, document := range map[string]string{"plain": largeDocument(5000), "templates": templated(5000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			for b.Loop() {
				if _, err := Parse("large.yaml", []byte(document)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
