package run

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// fakeLarge stands for the partitions of a run: fan-outs of more than 10 instances are large.
type fakeLarge struct {
	before *partitionedFanOut
	large  []int // counts of the large fan-outs
}

func (f *fakeLarge) isLarge(_, count int) bool    { return count > 10 }
func (f *fakeLarge) of(int) *partitionedFanOut    { return f.before }
func (f *fakeLarge) expandLarge(_ int, count int) { f.large = append(f.large, count) }

func newExpander(t *testing.T, task *v1.TaskDefinition) (*expander, *fakeLarge, *fakeQuestions) {
	t.Helper()
	x, f, e := newExecution(t, tasks(map[string]*v1.TaskDefinition{"each": task})), &fakeLarge{}, &fakeQuestions{}
	apply(x, x.core.Start())
	return &expander{execution: x, evaluator: e, partitions: f, unexpanded: map[int]bool{}}, f, e
}

// The number of instances is a number, the length of a list, or the value of an expression. A large fan-out goes to partitions.
func TestExpansion(t *testing.T) {
	t.Parallel()
	list, err := structpb.NewValue([]any{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		task   *v1.TaskDefinition
		kind   string
		answer *v1.ConditionAnswer
		event  dag.Event
		large  int
	}{
		"number":           {task: &v1.TaskDefinition{Parallel: structpb.NewNumberValue(3)}, event: dag.Expanded{Count: 3}},
		"list":             {task: &v1.TaskDefinition{Foreach: list}, event: dag.Expanded{Count: 2}},
		"large number":     {task: &v1.TaskDefinition{Parallel: structpb.NewNumberValue(30)}, large: 30},
		"expression":       {task: &v1.TaskDefinition{Parallel: structpb.NewStringValue("input.n")}, kind: asksCount, answer: &v1.ConditionAnswer{Count: 4}, event: dag.Expanded{Count: 4}},
		"large expression": {task: &v1.TaskDefinition{Foreach: structpb.NewStringValue("input.all")}, kind: asksItems, answer: &v1.ConditionAnswer{Count: 40}, large: 40},
		"expression that fails": {
			task: &v1.TaskDefinition{Foreach: structpb.NewStringValue("input.all")}, kind: asksItems,
			answer: &v1.ConditionAnswer{Count: 40, Error: "no such input"}, event: dag.Expanded{Count: 40, Err: "no such input"},
		},
	} {
		test.task.Type = v1.TypeShell
		ex, f, e := newExpander(t, test.task)
		ex.expand(0)
		if test.answer != nil {
			if len(e.asked) != 1 || e.asked[0].kind != test.kind || ex.hasEvents() {
				t.Errorf("%s: asked %v", name, e.asked)
				continue
			}
			e.asked[0].answered(test.answer)
		}
		events := ex.takeEvents()
		if test.event != nil && (len(events) != 1 || events[0] != test.event) || test.event == nil && len(events) > 0 {
			t.Errorf("%s: events %+v, want %+v", name, events, test.event)
		}
		if test.large > 0 && (len(f.large) != 1 || f.large[0] != test.large) || test.large == 0 && len(f.large) > 0 {
			t.Errorf("%s: large fan-outs of %v, want %d", name, f.large, test.large)
		}
	}
}

// A held fan-out expands when it is released, once.
func TestHeldFanOutExpandsWhenReleased(t *testing.T) {
	t.Parallel()
	ex, _, _ := newExpander(t, &v1.TaskDefinition{Type: v1.TypeShell, Parallel: structpb.NewNumberValue(3)})
	ex.records.At(0).Held = true
	if ex.expand(0); ex.hasEvents() {
		t.Fatal("a held task expands")
	}
	ex.records.At(0).Held = false
	ex.release(0)
	ex.release(0)
	if events := ex.takeEvents(); len(events) != 1 || events[0] != (dag.Expanded{Count: 3}) {
		t.Errorf("events: %+v", events)
	}
}

// A fan-out whose instances were requeued keeps its size, and its list is not evaluated again.
func TestRequeuedFanOutKeepsItsSize(t *testing.T) {
	t.Parallel()
	ex, f, e := newExpander(t, &v1.TaskDefinition{Type: v1.TypeShell, Foreach: structpb.NewStringValue("input.all")})
	f.before = &partitionedFanOut{total: 100, requeued: []int32{7}}
	if ex.expand(0); len(e.asked) > 0 || len(f.large) != 1 || f.large[0] != 100 {
		t.Errorf("asked %v, large fan-outs of %v", e.asked, f.large)
	}
}
