package condition

import (
	"slices"
	"testing"

	"buf.build/go/protovalidate"

	v1 "switchyard/proto/switchyard/v1"
)

// The states that a comparison may name are those of the model, except for those of tasks that have not ended.
func TestStatesAreThoseOfTheModel(t *testing.T) {
	field := (&v1.Task{}).ProtoReflect().Descriptor().Fields().ByName("state")
	rules, err := protovalidate.ResolveFieldRules(field)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(slices.Clone(rules.GetString().GetIn()), func(state string) bool {
		return slices.Contains([]string{"pending", "queued", "assigned", "running", "paused"}, state)
	})
	got := v1.TaskEndStates()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the states are %v, want %v", got, want)
	}
	for word, state := range stateAliases {
		if !slices.Contains(got, state) || slices.Contains(got, word) {
			t.Errorf("%s stands for %s", word, state)
		}
	}
}

func TestConditionMayCompareEveryState(t *testing.T) {
	for _, expr := range []string{
		"parent.build.state == 'completed'", "'dead_letter' != parent.build.result.state", "parent.build.state in ['failed', 'lost']",
		"parent.build.state.contains('fail')", "parent.build.state == parent.lint.state", "parent.build.output.state == 'success'",
		"workflow.context.state == 'success'", "parent.exists(t, parent[t].state == 'skipped')", "parent.build.state == workflow.context.word",
	} {
		if _, err := Check(expr, deploy()); err != nil {
			t.Errorf("%s: %v", expr, err)
		}
	}
	if _, err := Check("attempt.state == 'completed'", Scope{Kind: Retry}); err == nil {
		t.Error("retry.when may ask for a completed attempt")
	}
	if _, err := Check("attempt.state in ['lost', 'killed_oom', 'failed']", Scope{Kind: Retry}); err != nil {
		t.Error(err)
	}
}
