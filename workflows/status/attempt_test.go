package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// An attempt shows the GPUs, NUMA node and container that it had, even if another execution of the run has reattached it. A
// record from another node shows none of them.
func TestAttemptRecordsItsPlaceOnTheNode(t *testing.T) {
	t.Parallel()
	numa := int32(1)
	d := ending("a", v1.TaskFailed, &v1.ExecuteResponse{Node: "a", Result: &v1.TaskResult{Container: "3f2a9c0d1e4b"}})
	d.GPUs, d.NUMANode = []int32{0, 3}, &numa
	for node, want := range map[string]string{"a": "[0 3] 1 3f2a9c0d1e4b", "b": "[] 0 3f2a9c0d1e4b"} {
		d.Ended.Node = node
		a := attemptOf(d, time.Unix(0, 0))
		if got := fmt.Sprint(a.GetGpus(), a.GetNumaNode(), " ", a.GetContainer()); got != want || (a.NumaNode == nil) != (node == "b") {
			t.Errorf("on node %s it had %s", node, got)
		}
	}
}

// An attempt that ended without an answer of its node shows when it was assigned.
func TestAttemptWithoutAnAnswerWasAssigned(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	b.Update(0, dag.Record{State: v1.TaskAssigned, Claim: 1, Node: "a"}, time.Unix(2, 0))
	b.EndAttempt(0, ending("a", v1.TaskFailed, nil), time.Unix(3, 0))
	b.Update(0, dag.Record{State: v1.TaskFailed, Claim: 1, Node: "a"}, time.Unix(3, 0))
	a := b.taskMessage(0).GetAttempts()[0]
	if a.GetAssignedAt().GetSeconds() != 2 || a.GetCompletedAt().GetSeconds() != 3 {
		t.Errorf("assigned at %v, completed at %v", a.GetAssignedAt(), a.GetCompletedAt())
	}
}

// Suspicions add up until an attempt has run, and the task avoids a node once they reach the limit.
func TestSuspicionsEndWithAnAttempt(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int32]string{0: "1a 2a 0 1a", 2: "1 2a 0 1"} {
		b := newTestStatus(t, 1)
		b.suspicionLimit = max(1, limit)
		var got []string
		for _, reason := range []string{v1.ReasonNotStarted, v1.ReasonNotPickedUp, "", v1.ReasonNotStarted} {
			d := ending("a", v1.AttemptMoved, &v1.ExecuteResponse{})
			if d.Ended.Reason, d.Outcome = reason, v1.OutcomeSuspect; reason == "" {
				d.Ended.State, d.Outcome = v1.TaskFailed, v1.OutcomeDone
			}
			b.EndAttempt(0, d, time.Unix(1, 0))
			got = append(got, fmt.Sprint(b.taskMessage(0).GetSuspicions())+b.AvoidedNode(0))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with limit %d: %q, want %q", limit, got, want)
		}
	}
}

// Refusals are counted while they come in a row, an unacknowledged attempt is noted once, and the newest attempts are shown.
func TestDispatchesUpdateTheStatus(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	end := func(number int32, outcome string, unacknowledged bool, state string) {
		d := ending("a", state, &v1.ExecuteResponse{})
		d.Attempt, d.Outcome, d.Unacknowledged = number, outcome, unacknowledged
		b.EndAttempt(0, d, time.Unix(int64(number), 0))
	}
	for _, step := range []struct {
		outcome  string
		refusals int32
		avoid    string
	}{{"refused", 1, "a"}, {"refused", 2, "a"}, {"system", 0, "a"}, {"refused", 1, "a"}, {"done", 0, ""}, {"", 0, ""}, {"moved", 0, "a"}} {
		if end(0, step.outcome, step.outcome == "system", v1.AttemptMoved); b.Refusals(0) != step.refusals || b.AvoidedNode(0) != step.avoid {
			t.Errorf("after %q: %d refusals, avoid %q; want %d, %q", step.outcome, b.Refusals(0), b.AvoidedNode(0), step.refusals, step.avoid)
		}
	}
	end(0, v1.OutcomeSystem, true, v1.TaskLost)
	end(3, v1.OutcomeSystem, true, v1.TaskLost)
	if got := b.Unacknowledged(0); len(got) != 2 || got[0] != 0 || got[1] != 3 {
		t.Errorf("nobody heard of %v", got)
	}
	before := b.taskMessage(0)
	kept := len(before.GetAttempts())
	for n := range int32(250) {
		end(4+n, v1.OutcomeDone, false, v1.TaskFailed)
	}
	attempts := b.taskMessage(0).GetAttempts()
	if len(attempts) != maxAttempts || attempts[0].GetAttempt() != 154 || attempts[maxAttempts-1].GetAttempt() != 253 || len(before.GetAttempts()) != kept {
		t.Errorf("%d attempts, from %d on", len(attempts), attempts[0].GetAttempt())
	}
}

// A task whose node is silent counts as running until its fate is known.
func TestTaskOfASilentNodeRuns(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	now := time.Unix(100, 0)
	b.Update(0, dag.Record{State: v1.TaskAssigned, Node: "n", Claim: 1}, now)
	if task := b.taskMessage(0); task.GetState() != v1.TaskAssigned || task.GetNotice() != "" {
		t.Fatalf("before: %v", task)
	}
	b.SetSilent(0, "node n has been silent", timestamppb.New(now), now)
	if task := b.taskMessage(0); task.GetState() != v1.TaskRunning || task.GetNotice() != "node n has been silent" || task.GetStartedAt() == nil {
		t.Errorf("while its node is silent: %v", task)
	}
	b.EndSilence(0)
	if task := b.taskMessage(0); task.GetState() != v1.TaskAssigned || task.GetNotice() != "" || task.GetStartedAt() != nil {
		t.Errorf("afterwards: %v", task)
	}
}

// Consecutive lost leases are counted until an attempt ends in another way.
func TestLostLeasesAreCounted(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	for i, step := range []struct {
		state, reason string
		want          int32
	}{
		{v1.AttemptMoved, v1.ReasonLeaseLost, 1}, {v1.AttemptMoved, v1.ReasonDraining, 1}, {v1.AttemptMoved, v1.ReasonLeaseLost, 2},
		{v1.TaskLost, v1.ReasonNodeLost, 0}, {v1.AttemptMoved, v1.ReasonLeaseLost, 1}, {v1.TaskCompleted, "", 0},
	} {
		d := ending("n", step.state, &v1.ExecuteResponse{})
		d.Ended.Reason = step.reason
		if b.EndAttempt(0, d, time.Unix(int64(i), 0)); b.LostLeases(0) != step.want {
			t.Errorf("step %d: %d, want %d", i, b.LostLeases(0), step.want)
		}
	}
}

// A task that is away with its node is shown as lost, with a time of its end, until it is back or has ended.
func TestTaskOfAnAbsentNodeIsLostUntilTheNodeIsBack(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	now := time.Unix(100, 0)
	b.Update(0, dag.Record{State: v1.TaskRunning, Node: "n", Claim: 1}, now)
	b.SetSuspended(0, "by me")
	b.SetAway(0, "nothing has come", now)
	away := b.taskMessage(0)
	if away.GetState() != v1.TaskLost || away.GetReason() != v1.ReasonNodeLost || away.GetNotice() != "nothing has come" || away.GetError() != "nothing has come" ||
		!away.GetCompletedAt().AsTime().Equal(now) || !v1.IsTaskAway(away.GetState(), away.GetNotice()) {
		t.Errorf("the task is %v", away)
	}
	carried := b.taskState(0, dag.Record{State: v1.TaskRunning, Node: "n", Claim: 1})
	next := newTestStatus(t, 1)
	next.Restore(0, carried, false)
	if again := next.taskMessage(0); again.GetState() != v1.TaskLost || again.GetCompletedAt() == nil || again.GetNotice() == "" {
		t.Errorf("in the next execution the task is %v", again)
	}
	next.SetBack(0, now)
	next.SetBack(0, now)
	if back := next.taskMessage(0); back.GetState() != v1.TaskPaused || back.GetCompletedAt() != nil || back.GetNotice() != "" {
		t.Errorf("back, the task is %v", back)
	}
	b.EndAway(0)
	if ended := b.taskMessage(0); ended.GetState() != v1.TaskPaused || ended.GetCompletedAt() != nil {
		t.Errorf("the task is %v", ended)
	}
}
