package condition

import (
	"slices"
	"strings"
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
	for word, state := range wordAliases {
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

// The state of the run is not that of a task: in `finally` its tasks have ended, and a notification may be about an open run. Its reason
// and trigger have their own words, and so does the event of a notification.
func TestFieldsOfTheRunAreComparedWithTheirWords(t *testing.T) {
	for _, c := range []struct {
		kind       Kind
		expr, want string
	}{
		{Condition.InFinally(), "run.state == 'rejected'", ""},
		{Condition.InFinally(), "run.state in ['failed', 'cancelled'] || run.state != 'completed'", ""},
		{Condition.InFinally(), "run.state == 'success'", "did you mean 'completed'? The states are completed, failed, cancelled, rejected)"},
		{Condition.InFinally(), "run.state == 'dead_letter'", "the states are completed, failed, cancelled, rejected)"},
		{Condition.InFinally(), "run.state == 'dead_letter'", "'dead_letter' is not a state that the tasks of a run end in"},
		{Condition.InFinally(), "run.state == 'running'", "is not a state"},
		{Condition.InFinally(), "run.reson == ''", "did you mean reason?"},
		{Condition.InFinally(), "run.since == ''", "run has id, name, state, reason, error, failed"},
		{Condition.InFinally(), "run.reason == 'deadline' || run.reason == '' || run.trigger in ['schedule', 'submit']", ""},
		{Condition.InFinally(), "run.reason == 'flooded'", "'flooded' is not a reason for which a run ends (the reasons are task_failed, finally_failed, deadline,"},
		{Value.InFinally(), "run.trigger == 'cron'", "'cron' is not a trigger of a run (the triggers are submit, rerun, retry, child, schedule, manual)"},
		{Notify, "event in ['failed', 'recovered'] && run.reason != 'terminated'", ""},
		{Notify, "event == 'fail'", "'fail' is not an event that a notification is about (did you mean 'failed'? The events are failed, completed,"},
		{Message, "event == 'success' ? 'good' : 'bad'", "did you mean 'completed'?"},
		{Notify, "run.reason == 'dead_line'", "did you mean 'deadline'?"},
		{Notify, "run.state == 'running'", ""},
		{Notify, "run.state == 'dead_letter'", "'dead_letter' is not a state that a run is in"},
	} {
		_, err := Check(c.expr, Scope{Kind: c.kind, Task: "report"})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.expr, err, c.want)
		}
	}
}

// Where functions of other systems ask for the end of the run, `finally` has the state of the run, and a notification its event.
func TestFinallyNamesItsReplacementsOfFunctions(t *testing.T) {
	for expr, want := range map[string]string{
		"always()": "leave it out", "failure()": "run.state == 'failed'", "!cancelled()": "run.state == 'cancelled'", "success()": "run.state == 'completed'",
	} {
		_, err := Check(expr, Scope{Kind: Condition.InFinally(), Task: "report"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
		if _, err := Check(expr, Scope{Kind: Notify}); err == nil || !strings.Contains(err.Error(), "write on: [") {
			t.Errorf("%s of a notification: %v", expr, err)
		}
		if _, err := Check(expr, Scope{Task: "report"}); err == nil || strings.Contains(err.Error(), want) {
			t.Errorf("%s outside of finally: %v", expr, err)
		}
	}
}
