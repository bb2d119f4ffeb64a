package placement

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// TestRequestCountsAsWaitingOrPlaced checks that each request counts either as waiting or as placed, and that
// Options.Placed is called once for each placement.
func TestRequestCountsAsWaitingOrPlaced(t *testing.T) {
	t.Parallel()
	c := newClock()
	var waits []time.Duration
	q := New(Options{Now: c.now, Placed: func(taskType string, waited time.Duration) {
		if taskType != "shell" {
			t.Errorf("a task of type %q was placed", taskType)
		}
		waits = append(waits, waited)
	}})
	q.SetNodes(live(aNode("a", slots(1))))
	counts := func(wantWaiting, wantPlaced int) {
		t.Helper()
		if waiting, placed := q.Counts(); waiting != wantWaiting || placed != wantPlaced {
			t.Errorf("%d wait and %d are placed; want %d and %d", waiting, placed, wantWaiting, wantPlaced)
		}
	}
	counts(0, 0)
	ready := timestamppb.New(c.now())
	q.Request(Run{ID: "r"}, []*historyv1.TaskRequest{
		{Task: "x", Claim: 1, Type: "shell", QueuedAt: ready}, {Task: "y", Claim: 1, Type: "shell", QueuedAt: ready},
		{Task: "z", Claim: 1, Type: "shell", QueuedAt: ready, Refusals: 2},
	})
	c.add(10 * time.Millisecond)
	q.Place()
	counts(2, 1)
	c.add(5 * time.Second)
	q.Release("r", []*historyv1.ClaimRef{{Task: "x", Claim: 1, Outcome: "done"}})
	q.Place()
	counts(1, 1)
	q.Forget("r")
	counts(0, 0)
	if len(waits) != 2 || waits[0] != 10*time.Millisecond || waits[1] != 5010*time.Millisecond {
		t.Errorf("the hook was told of waits of %v", waits)
	}
}
