package visibility

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	v1 "switchyard/proto/switchyard/v1"
)

// SQL stores hold 10 attributes of type Keyword in a namespace, and 3 of each other type; other programs use the namespace,
// too.
func TestTypesFitSQLStores(t *testing.T) {
	used := map[enumspb.IndexedValueType]int{}
	for _, kind := range Types() {
		used[kind]++
	}
	for kind, n := range used {
		most := 3
		if kind == enumspb.INDEXED_VALUE_TYPE_KEYWORD {
			most = 7
		}
		if n > most {
			t.Errorf("%d attributes of type %s, want at most %d", n, kind, most)
		}
	}
}

func TestAttributesSurviveEncoding(t *testing.T) {
	a := StartedBy("parent-1", "etl", time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.UTC))
	a.Describe(&v1.Definition{Name: "etl", Description: "reads meters", Tasks: map[string]*v1.TaskDefinition{
		"b": {Type: "shell", Constraints: &v1.Constraints{NodeLabels: []string{"ssd", "gpu"}, AnyLabels: []string{"gpu", "it's \"odd\" \\"}}},
		"a": {Type: "container"}, "c": {Type: "shell"},
	}})
	a.AddOrigin("ann@laptop (unverified)", "night-7")
	a.AddNode("n2")
	a.AddNode("n1")
	a.AddNode("n2")
	a.End("failed", `task "b" failed`)
	a.DeadLetters = 2
	a.AddLate(time.Date(2026, 3, 14, 16, 0, 0, 0, time.UTC))
	a.AddLate(time.Date(2026, 3, 14, 17, 0, 0, 0, time.UTC))
	encoded, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got := Decode(encoded)
	if len(got.Updates(a)) != 0 || len(a.Updates(got)) != 0 {
		t.Errorf("got %+v, want %+v", got, a)
	}
	if len(encoded.GetIndexedFields()) != len(Types()) {
		t.Errorf("%d of %d attributes are encoded", len(encoded.GetIndexedFields()), len(Types()))
	}
	if !slices.Equal(got.Types, []string{"container", "shell"}) || !slices.Equal(got.Nodes, []string{"n2", "n1"}) ||
		!slices.Equal(got.Labels, []string{"gpu", "it's \"odd\" \\", "ssd"}) || got.Owner != "ann@laptop (unverified)" || got.Batch != "night-7" || got.Text != `task "b" failed reads meters a b c` {
		t.Errorf("got %+v", got)
	}
	again := got.Reopened()
	if again.State != "pending" || again.Trigger != v1.TriggerRetry || again.DeadLetters != 0 || again.Parent != "parent-1" || again.Owner != a.Owner || again.Batch != a.Batch || !again.Submitted.Equal(a.Submitted) {
		t.Errorf("started again: %+v", again)
	}
}

// Temporal accepts 2 KiB per value, and what users write is unbounded.
func TestAttributesAreBounded(t *testing.T) {
	def := &v1.Definition{Name: "large", Description: strings.Repeat("\x01ü", 5000), Tasks: map[string]*v1.TaskDefinition{}}
	for i := range 500 {
		def.Tasks[fmt.Sprintf("t%03d", i)] = &v1.TaskDefinition{
			Type: "shell", Constraints: &v1.Constraints{NodeLabels: []string{fmt.Sprintf("%03d<%s>", i, strings.Repeat("\"", 100))}},
		}
	}
	a := Started("large", v1.TriggerSubmit, time.Now())
	a.Describe(def)
	a.AddOrigin(strings.Repeat("<", 5000), strings.Repeat("<", 5000))
	for i := range 500 {
		a.AddNode(fmt.Sprintf("%s-%03d", strings.Repeat("n", 59), i))
	}
	a.End("failed", strings.Repeat("\\", 5000))
	encoded, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for name, payload := range encoded.GetIndexedFields() {
		total += len(name) + len(payload.GetData())
		if len(payload.GetData()) > 2<<10 {
			t.Errorf("%s takes %d bytes", name, len(payload.GetData()))
		}
	}
	if total > MaxBytes {
		t.Errorf("all take %d bytes, more than the %d that are charged", total, MaxBytes)
	}
	if len(a.Nodes) == 0 || len(a.Labels) == 0 || len(a.Nodes) > maxNodes {
		t.Errorf("%d nodes, %d labels", len(a.Nodes), len(a.Labels))
	}
}
