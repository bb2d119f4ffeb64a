package run

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// The outputs of ancestors are stored again once an instance of one of them has run again.
func TestRerunOfAnInstanceChangesTheVersionOfAncestors(t *testing.T) {
	t.Parallel()
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{
		"each": {Type: v1.TypeShell, Parallel: structpb.NewNumberValue(2), MaxFailures: 2, Retry: &v1.RetryPolicy{MaxRetries: new(int32(1))}},
		"last": {Type: v1.TypeShell, DependsOn: []string{"each"}},
	}))
	happen := func(events ...dag.Event) {
		for _, i := range x.core.Apply(events...).Changed {
			x.records.Changed(i, x.core.Task(i), false, i == 0)
		}
	}
	end := func(i int, state string) {
		claim := x.core.Task(i).Claim
		happen(dag.Placed{Task: i, Claim: claim, Node: "n"}, dag.Ended{Task: i, Claim: claim, State: state})
	}
	x.core.Start()
	happen(dag.Expanded{Task: 0, Count: 2})
	end(2, v1.TaskCompleted)
	end(3, v1.TaskFailed)
	happen(dag.BackoffOver{Task: 3, Claim: x.core.Task(3).Claim})
	end(3, v1.TaskFailed)
	before, state := x.ancestorsVersion(1), x.core.Task(0).State
	if err := x.core.MayRetry(3); err != nil || !v1.IsTaskTerminal(state) {
		t.Fatalf("each is %s; its instance cannot be retried: %v", state, err)
	}
	happen(dag.Retry{Task: 3})
	end(3, v1.TaskCompleted)
	if again := x.core.Task(0).State; again != state || x.ancestorsVersion(1) == before {
		t.Errorf("each is %s, before %s; the version is the same: %v", again, state, x.ancestorsVersion(1) == before)
	}
}
