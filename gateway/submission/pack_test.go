package submission

import (
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestRestartedChildKeepsItsDepth checks that a restarted child run keeps its depth, but that no parent awaits it with a lock.
func TestRestartedChildKeepsItsDepth(t *testing.T) {
	t.Parallel()
	in, err := Pack(&historyv1.RunInput{
		Definition: &v1.Definition{Name: "inner"}, Generation: 1, ParentRun: "outer-1", ParentTask: "t", Depth: 3, ParentFirst: "x",
		HeldLocks: []*historyv1.HeldLock{{Lock: "m"}},
	})
	if err != nil || in.GetParentRun() != "outer-1" || in.GetParentTask() != "t" || in.GetDepth() != 3 || in.GetParentFirst() != "" || in.GetHeldLocks() != nil {
		t.Errorf("%v, %v", in, err)
	}
}
