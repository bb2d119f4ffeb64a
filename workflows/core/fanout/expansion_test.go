package fanout

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// The number of instances is a number, the length of a list, or the value of an expression. A large fan-out goes to partitions, a
// held one waits until it is released, and one with requeued instances keeps its size.
func TestExpand(t *testing.T) {
	t.Parallel()
	number, list, expression := structpb.NewNumberValue, structpb.NewListValue(&structpb.ListValue{Values: make([]*structpb.Value, 2)}), structpb.NewStringValue("input.x")
	release := func(s *State) []Effect {
		s.records.At(0).Held = false
		return append(s.Release(0), s.Release(0)...)
	}
	for name, test := range map[string]struct {
		parallel, foreach *structpb.Value
		prepare           func(*State)
		then              func(*State) []Effect
		answer            *historyv1.ConditionAnswer
		want              string
	}{
		"number":       {parallel: number(3), want: "expanded 3"},
		"list":         {foreach: list, want: "expanded 2"},
		"large number": {parallel: number(300), want: "show map[pending:300], expanded 300"},
		"expression":   {parallel: expression, answer: &historyv1.ConditionAnswer{Count: 4}, want: "ask count, expanded 4"},
		"list of an expression": {
			foreach: expression, answer: &historyv1.ConditionAnswer{Count: 400, Items: &historyv1.Items{Key: "items"}},
			want: "ask items, show map[pending:400], expanded 400",
		},
		"expression that fails": {
			foreach: expression, answer: &historyv1.ConditionAnswer{Count: 400, Error: "no such input"}, want: "ask items, expanded 400 no such input",
		},
		"partition": {
			foreach: expression, prepare: func(s *State) {
				s.Input.Partition = &historyv1.Partition{From: 200, To: 250, Items: &historyv1.Items{Key: "items"}}
			},
			want: "expanded 50",
		},
		"held":     {parallel: number(3), prepare: func(s *State) { s.records.At(0).Held = true }},
		"released": {parallel: number(3), prepare: func(s *State) { s.records.At(0).Held = true }, then: release, want: "expanded 3"},
		"ended while it was held": {
			parallel: number(3), prepare: func(s *State) { s.records.At(0).Held = true },
			then: func(s *State) []Effect { s.core.Apply(dag.Cancel{}); return release(s) },
		},
		"requeued": {foreach: expression, prepare: func(s *State) { s.partition(0, 300); s.Requeue(0, 7); s.take() }, want: "show map[pending:300], expanded 300"},
	} {
		s := newState(t, &v1.TaskDefinition{})
		task := s.core.Definition(0)
		task.Parallel, task.Foreach = test.parallel, test.foreach
		if test.prepare != nil {
			test.prepare(s)
		}
		effects := s.Expand(0)
		if test.then != nil {
			effects = append(effects, test.then(s)...)
		}
		if test.answer != nil {
			effects = append(effects, s.Counted(0, test.answer)...)
		}
		if got := texts(s, effects); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if key := s.records.Of(0).Items.GetKey(); test.answer.GetItems() != nil && key != "items" {
			t.Errorf("%s: the list is %q", name, key)
		}
	}
}
