package dag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

func TestEventsThatDoNotFitAreIgnored(t *testing.T) {
	l, _ := start(t, &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {}, "b": {DependsOn: []string{"a"}}}})
	none := func(when string, events ...dag.Event) {
		t.Helper()
		before := l.s.Records()
		if diff := cmp.Diff(dag.Decisions{}, l.s.Apply(events...)); diff != "" {
			t.Errorf("%s: decisions:\n%s", when, diff)
		}
		if diff := cmp.Diff(before, l.s.Records()); diff != "" {
			t.Errorf("%s: records (-before +after):\n%s", when, diff)
		}
	}
	none("no task", dag.Placed{Task: -1, Claim: 1}, dag.Ended{Task: 2, Claim: 1}, dag.Evaluated{Task: 7}, dag.BackoffOver{Task: -7})
	none("pending", dag.Placed{Task: 1}, dag.GaveUp{Task: 1}, dag.Ended{Task: 1}, dag.Evaluated{Task: 1, Value: true})
	none("queued", dag.Ended{Claim: 1, State: "failed"}, dag.Running{Claim: 1}, dag.BackoffOver{Claim: 1}, dag.Evaluated{}, dag.Placed{Claim: 2})
	l.placed("a")
	none("assigned", dag.Placed{Claim: 1, Node: "b"}, dag.GaveUp{Claim: 1}, dag.Ended{Claim: 2}, dag.Ended{}, dag.BackoffOver{Claim: 1})
	l.s.Apply(dag.Running{Claim: 1})
	none("running", dag.Running{Claim: 1}, dag.Placed{Claim: 1})
	l.s.Apply(dag.Ended{Claim: 1, State: "failed"})
	none("back-off", dag.Ended{Claim: 1, State: "completed"}, dag.Placed{Claim: 1}, dag.GaveUp{Claim: 1}, dag.BackoffOver{Claim: 2})
	l.s.Apply(dag.BackoffOver{Claim: 1})
	none("queued again", dag.BackoffOver{Claim: 1}, dag.Placed{Claim: 1}, dag.Ended{Claim: 1, State: "completed"})
	l.placed("a")
	none("assigned again", dag.Ended{Claim: 1, State: "completed"})
	l.s.Apply(dag.Ended{Claim: 2, State: "completed"})
	none("ended", dag.Ended{Claim: 2, State: "failed"}, dag.Running{Claim: 2}, dag.BackoffOver{Claim: 2}, dag.GaveUp{Claim: 2})
}
