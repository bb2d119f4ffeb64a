package run

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// newExpander returns a run in which fan-outs of more than 10 instances are large.
func newExpander(t *testing.T, task *v1.TaskDefinition) *run {
	t.Helper()
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"each": task}))
	apply(x, x.core.Start())
	x.fanOuts.Limits.Instances = 10
	return x
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
		answer *historyv1.ConditionAnswer
		event  dag.Event
	}{
		"number":           {task: &v1.TaskDefinition{Parallel: structpb.NewNumberValue(3)}, event: dag.Expanded{Count: 3}},
		"list":             {task: &v1.TaskDefinition{Foreach: list}, event: dag.Expanded{Count: 2}},
		"large number":     {task: &v1.TaskDefinition{Parallel: structpb.NewNumberValue(30)}, event: dag.Expanded{Count: 30, Partitioned: true}},
		"expression":       {task: &v1.TaskDefinition{Parallel: structpb.NewStringValue("input.n")}, kind: asksCount, answer: &historyv1.ConditionAnswer{Count: 4}, event: dag.Expanded{Count: 4}},
		"large expression": {task: &v1.TaskDefinition{Foreach: structpb.NewStringValue("input.all")}, kind: asksItems, answer: &historyv1.ConditionAnswer{Count: 40}, event: dag.Expanded{Count: 40, Partitioned: true}},
		"expression that fails": {
			task: &v1.TaskDefinition{Foreach: structpb.NewStringValue("input.all")}, kind: asksItems,
			answer: &historyv1.ConditionAnswer{Count: 40, Error: "no such input"}, event: dag.Expanded{Count: 40, Err: "no such input"},
		},
	} {
		test.task.Type = v1.TypeShell
		ex := newExpander(t, test.task)
		ex.expand(0)
		if test.answer != nil {
			if len(ex.questions) != 1 || ex.questions[0].kind != test.kind || ex.hasEvents() {
				t.Errorf("%s: asked %v", name, ex.questions)
				continue
			}
			ex.questions[0].answered(test.answer)
		}
		events := ex.takeEvents()
		if len(events) != 1 || events[0] != test.event {
			t.Errorf("%s: events %+v, want %+v", name, events, test.event)
		}
	}
}

// A held fan-out expands when it is released, once.
func TestHeldFanOutExpandsWhenReleased(t *testing.T) {
	t.Parallel()
	ex := newExpander(t, &v1.TaskDefinition{Type: v1.TypeShell, Parallel: structpb.NewNumberValue(3)})
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
	ex := newExpander(t, &v1.TaskDefinition{Type: v1.TypeShell, Foreach: structpb.NewStringValue("input.all")})
	ex.fanOuts.Expand(0, 100)
	ex.fanOuts.Requeue(0, 7)
	ex.expand(0)
	if events := ex.takeEvents(); len(ex.questions) > 0 || len(events) != 1 || events[0] != (dag.Expanded{Count: 100, Partitioned: true}) {
		t.Errorf("asked %v, events %+v", ex.questions, events)
	}
}
