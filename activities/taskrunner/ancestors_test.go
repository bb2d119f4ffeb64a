package taskrunner

import (
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// For a very large parent, a task sees only the instances that did not complete, and only up to the limit.
func TestInstancesOfALargeParentAreBounded(t *testing.T) {
	t.Parallel()
	states := map[int32]string{}
	for i := int32(5000); i < 9000; i += 2 {
		states[i] = v1.TaskLost
	}
	for _, test := range []struct {
		count int32
		want  int
		first int32
		state string
	}{{1000, 1000, 0, v1.TaskCompleted}, {1001, 0, 0, ""}, {5010, 5, 5000, v1.TaskLost}, {100_000, maxShownInstances, 5000, v1.TaskLost}} {
		got, err := (&Node{}).inputReader().instances(t.Context(), &historyv1.FanOutView{Count: test.count, Outputs: &historyv1.Items{States: states}}, nil)
		if err != nil || len(got) != test.want {
			t.Fatalf("%d of %d instances, error %v, want %d", len(got), test.count, err, test.want)
		}
		if test.want == 0 {
			continue
		}
		if one := got[0].(map[string]any); one["index"] != test.first || one["state"] != test.state {
			t.Errorf("the first of %d is %v", test.count, one)
		}
	}
}
