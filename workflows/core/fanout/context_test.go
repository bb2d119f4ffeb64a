package fanout

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
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
	s := newState(t, &v1.TaskDefinition{})
	s.Input.Partition = &historyv1.Partition{}
	var numbers []int64
	for range 5 {
		number, _ := s.Update(object("k", strings.Repeat("x", definition.MaxContextBytes/2)), start)
		numbers = append(numbers, number)
	}
	for i := range 5 {
		if !s.hasUnsent() {
			t.Fatalf("nothing is left after %d reports", i)
		}
		if updates, bytes := s.takeUnsent(); len(updates) != 1 || updates[0].GetNumber() != numbers[i] || bytes > definition.MaxContextBytes {
			t.Errorf("report %d has %d updates, %d bytes", i, len(updates), bytes)
		}
	}
	if updates, _ := s.takeUnsent(); s.hasUnsent() || len(updates) > 0 {
		t.Errorf("%d updates are sent twice", len(updates))
	}
}

// A run merges an update at once. An update for which the context has no room changes nothing, and the attempt learns why.
func TestRunMergesUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	s := newState(t, &v1.TaskDefinition{})
	s.context = object("version", "1")
	before := s.Context()
	for _, test := range []struct {
		update *structpb.Struct
		want   string
	}{
		{nil, "settle 0"},
		{object("version", "2"), "show context, settle 0"},
		{object("log", strings.Repeat("x", definition.MaxContextBytes)), "show context, settle 0 refused"},
	} {
		if _, effects := s.Update(test.update, start); texts(s, effects) != test.want {
			t.Errorf("effects %s, want %s", texts(s, effects), test.want)
		}
	}
	if got := s.Context().GetFields(); got["version"].GetStringValue() != "2" || len(got) != 1 {
		t.Errorf("the context is %v", got)
	}
	if before.GetFields()["version"].GetStringValue() != "1" {
		t.Error("a request that holds the context has changed")
	}
}

// In a partition an instance ends only when the run has answered for its update. If the run has ended, the update is refused.
func TestPartitionAwaitsTheAnswerOfItsRun(t *testing.T) {
	t.Parallel()
	s := newState(t, &v1.TaskDefinition{})
	s.Input.Partition = &historyv1.Partition{}
	for _, key := range []string{"first", "second", "third"} {
		if _, effects := s.Update(object(key, "1"), start); len(effects) > 0 {
			t.Fatalf("effects: %s", texts(s, effects))
		}
	}
	updates, _ := s.takeUnsent()
	one, two, three := updates[0].GetNumber(), updates[1].GetNumber(), updates[2].GetNumber()
	if !s.AwaitsAnswers() || one >= two || two >= three {
		t.Fatalf("updates %v", updates)
	}
	effects := s.Answered(&historyv1.ContextAnswer{Verdicts: []*historyv1.ContextVerdict{{Number: two}, {Number: one, Refusal: "no room"}, {Number: 1, Refusal: "of another execution"}}})
	if want := fmt.Sprintf("settle %d, settle %d refused, show context, wake", two, one); texts(s, effects) != want {
		t.Errorf("effects %s, want %s", texts(s, effects), want)
	}
	if got := s.Context().GetFields(); len(got) != 1 || got["second"] == nil {
		t.Errorf("later instances see %v", got)
	}
	if want := fmt.Sprintf("cancel: %s, settle %d refused, wake", runGone, three); texts(s, s.RunEnded()) != want || s.AwaitsAnswers() {
		t.Errorf("the update is not refused at the end of the run")
	}
}

// A run answers the context updates of a partition once, in their order, even if the report is older than the newest one.
func TestRunAnswersUpdatesOfPartitions(t *testing.T) {
	t.Parallel()
	s, m := openState(t)
	m.partitions[0].Revision = 9
	late := &historyv1.PartitionReport{Task: "each", Chain: "chain", Revision: 8, Nodes: []string{"n"}, ContextUpdates: []*historyv1.ContextUpdate{
		{Number: 4, Update: object("a", "1")}, {Number: 5, Update: object("a", strings.Repeat("x", definition.MaxContextBytes))},
	}}
	effects := s.Reported(late)
	if want := "show context, answer 4 merged 5 refused, wake, show node n"; texts(s, effects) != want {
		t.Errorf("effects %s, want %s", texts(s, effects), want)
	}
	if !s.OwesAnswers() {
		t.Error("the answer is not in flight")
	}
	if s.AnswerSent(); s.OwesAnswers() {
		t.Error("the answer is still in flight")
	}
}
