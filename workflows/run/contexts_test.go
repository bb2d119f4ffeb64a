package run

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// A context accepts updates up to its size limit. An update that does not fit changes nothing.
func TestSetFields(t *testing.T) {
	t.Parallel()
	text := func(n int) *structpb.Value { return structpb.NewStringValue(strings.Repeat("x", n)) }
	object := func(fields map[string]*structpb.Value) *structpb.Struct { return &structpb.Struct{Fields: fields} }
	context := object(map[string]*structpb.Value{"a": text(1), "b": text(1)})
	for _, test := range []struct {
		update *structpb.Struct
		fits   bool
		want   string
	}{
		{object(map[string]*structpb.Value{"b": text(2), "c": text(3)}), true, "1 2 3"},
		{object(map[string]*structpb.Value{"a": text(9), "d": text(definition.MaxContextBytes)}), false, "1 2 3"},
		{object(map[string]*structpb.Value{"c": text(1)}), true, "1 2 1"},
	} {
		size := setFields(context, test.update)
		if fits := size <= definition.MaxContextBytes; fits != test.fits {
			t.Errorf("%d bytes", size)
		}
		lengths := ""
		for _, key := range []string{"a", "b", "c"} {
			lengths += fmt.Sprint(len(context.GetFields()[key].GetStringValue()), " ")
		}
		if strings.TrimSpace(lengths) != test.want || len(context.GetFields()) != 3 {
			t.Errorf("the context has values of %s bytes, want %s; it has %d keys", lengths, test.want, len(context.GetFields()))
		}
	}
	if size := setFields(&structpb.Struct{}, object(map[string]*structpb.Value{"a": text(1)})); size == 0 {
		t.Error("an empty context takes nothing")
	}
}

// A report holds as many context updates as fit, but at least one. Each update is sent once.
func TestReportsAskForEachUpdateOnce(t *testing.T) {
	t.Parallel()
	cx := &contexts{}
	for i := range 5 {
		value := structpb.NewStringValue(strings.Repeat("x", definition.MaxContextBytes/2))
		cx.asks = append(cx.asks, &contextAsk{ContextUpdate: &v1.ContextUpdate{
			Number: int64(i), Update: &structpb.Struct{Fields: map[string]*structpb.Value{"k": value}},
		}})
	}
	for i := range 5 {
		if !cx.hasUnsent() {
			t.Fatalf("nothing is left after %d reports", i)
		}
		if updates, bytes := cx.takeUnsent(); len(updates) != 1 || updates[0].GetNumber() != int64(i) || bytes > definition.MaxContextBytes {
			t.Errorf("report %d has %d updates, %d bytes", i, len(updates), bytes)
		}
	}
	if updates, _ := cx.takeUnsent(); cx.hasUnsent() || len(updates) > 0 {
		t.Errorf("%d updates are sent twice", len(updates))
	}
}

// A run merges an update at once. An update for which the context has no room changes nothing, and the attempt learns why.
func TestRunMergesUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"a": {Type: v1.TypeShell}}))
	x.context = &structpb.Struct{Fields: map[string]*structpb.Value{"version": structpb.NewNumberValue(1)}}
	before, cx, refusals := x.context, &contexts{execution: x}, []string{}
	settle := func(refusal string) { refusals = append(refusals, refusal) }
	cx.add(nil, settle)
	cx.add(&structpb.Struct{Fields: map[string]*structpb.Value{"version": structpb.NewNumberValue(2)}}, settle)
	cx.add(&structpb.Struct{Fields: map[string]*structpb.Value{
		"version": structpb.NewNumberValue(3), "log": structpb.NewStringValue(strings.Repeat("x", definition.MaxContextBytes)),
	}}, settle)
	if len(refusals) != 3 || refusals[0] != "" || refusals[1] != "" || !strings.Contains(refusals[2], "the context would grow") {
		t.Errorf("refusals: %q", refusals)
	}
	if got := x.context.GetFields()["version"].GetNumberValue(); got != 2 || len(x.context.GetFields()) != 1 {
		t.Errorf("the context is %v", x.context)
	}
	if before.GetFields()["version"].GetNumberValue() != 1 {
		t.Error("a request that holds the context has changed")
	}
}

// In a partition an instance ends only when the run has answered for its update. If the run has ended, the update is refused.
func TestPartitionAwaitsTheAnswerOfItsRun(t *testing.T) {
	t.Parallel()
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"a": {Type: v1.TypeShell}}))
	x.in.Partition = &v1.Partition{Task: "a"}
	cx, settled := &contexts{execution: x}, map[string]string{}
	for _, key := range []string{"first", "second", "third"} {
		cx.add(&structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewBoolValue(true)}}, func(refusal string) { settled[key] = refusal })
	}
	updates, _ := cx.takeUnsent()
	if len(settled) > 0 || len(updates) != 3 || !cx.awaitsAnswers() || updates[0].GetNumber() >= updates[1].GetNumber() {
		t.Fatalf("settled %v, updates %v", settled, updates)
	}
	cx.settle([]*v1.ContextVerdict{
		{Number: updates[1].GetNumber()}, {Number: updates[0].GetNumber(), Refusal: "no room"}, {Number: 1, Refusal: "of another execution"},
	})
	if len(settled) != 2 || settled["first"] != "no room" || settled["second"] != "" {
		t.Errorf("settled %v", settled)
	}
	if fields := x.context.GetFields(); len(fields) != 1 || !fields["second"].GetBoolValue() || x.isEmpty() {
		t.Errorf("later instances see %v", fields)
	}
	cx.refuseAll("the run has ended")
	if settled["third"] != "the run has ended" || cx.awaitsAnswers() {
		t.Errorf("settled %v", settled)
	}
}
