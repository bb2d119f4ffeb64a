package view

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// An attempt shows the GPUs, NUMA node and container that it had, even if another execution of the run has reattached it. A
// record from another node shows none of them.
func TestAttemptRecordsItsPlaceOnTheNode(t *testing.T) {
	t.Parallel()
	numa := int32(1)
	d := ending("a", v1.TaskFailed, &historyv1.ExecuteResponse{Node: "a", Result: &v1.TaskResult{Container: "3f2a9c0d1e4b"}})
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
	become(b, 0, dag.Record{State: v1.TaskAssigned, Claim: 1, Node: "a"}, time.Unix(2, 0))
	b.EndAttempt(0, ending("a", v1.TaskFailed, nil), time.Unix(3, 0))
	become(b, 0, dag.Record{State: v1.TaskFailed, Claim: 1, Node: "a"}, time.Unix(3, 0))
	a := b.taskMessage(0).GetAttempts()[0]
	if a.GetAssignedAt().GetSeconds() != 2 || a.GetCompletedAt().GetSeconds() != 3 {
		t.Errorf("assigned at %v, completed at %v", a.GetAssignedAt(), a.GetCompletedAt())
	}
}

// Only the newest attempts are shown.
func TestNewestAttemptsAreShown(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	end := func(number int32) {
		d := ending("a", v1.TaskFailed, &historyv1.ExecuteResponse{})
		d.Attempt = number
		b.EndAttempt(0, d, time.Unix(int64(number), 0))
	}
	end(0)
	before := b.taskMessage(0)
	for n := range int32(250) {
		end(4 + n)
	}
	attempts := b.taskMessage(0).GetAttempts()
	if len(attempts) != maxAttempts || attempts[0].GetAttempt() != 154 || attempts[maxAttempts-1].GetAttempt() != 253 || len(before.GetAttempts()) != 1 {
		t.Errorf("%d attempts, from %d on", len(attempts), attempts[0].GetAttempt())
	}
}

// A task whose node is silent counts as running until its fate is known.
func TestTaskOfASilentNodeRuns(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	now := time.Unix(100, 0)
	become(b, 0, dag.Record{State: v1.TaskAssigned, Node: "n", Claim: 1}, now)
	if task := b.taskMessage(0); task.GetState() != v1.TaskAssigned || task.GetNotice() != "" {
		t.Fatalf("before: %v", task)
	}
	b.records.At(0).Silent = "node n has been silent"
	b.SetStartedAt(0, timestamppb.New(now))
	if task := b.taskMessage(0); task.GetState() != v1.TaskRunning || task.GetNotice() != "node n has been silent" || task.GetStartedAt() == nil {
		t.Errorf("while its node is silent: %v", task)
	}
	b.records.At(0).Silent = ""
	b.SetStartedAt(0, nil)
	if task := b.taskMessage(0); task.GetState() != v1.TaskAssigned || task.GetNotice() != "" || task.GetStartedAt() != nil {
		t.Errorf("afterwards: %v", task)
	}
}

// A task that is away with its node is shown as lost, with a time of its end, until it is back or has ended.
func TestTaskOfAnAbsentNodeIsLostUntilTheNodeIsBack(t *testing.T) {
	t.Parallel()
	b := newTestStatus(t, 1)
	now := time.Unix(100, 0)
	become(b, 0, dag.Record{State: v1.TaskRunning, Node: "n", Claim: 1}, now)
	b.records.At(0).Suspended = "by me"
	b.records.At(0).Away, b.records.At(0).AwayAt = "nothing has come", now
	away := b.taskMessage(0)
	if away.GetState() != v1.TaskLost || away.GetReason() != v1.ReasonNodeLost || away.GetNotice() != "nothing has come" || away.GetError() != "nothing has come" ||
		!away.GetCompletedAt().AsTime().Equal(now) || !v1.IsTaskAway(away.GetState(), away.GetNotice()) {
		t.Errorf("the task is %v", away)
	}
	carried := save(b).GetTasks()["t0"]
	next := newTestStatus(t, 1)
	*next.core = *b.core
	next.records.Restore(0, carried, false)
	next.Restore(0, carried)
	if again := next.taskMessage(0); again.GetState() != v1.TaskLost || again.GetCompletedAt() == nil || again.GetNotice() == "" {
		t.Errorf("in the next execution the task is %v", again)
	}
	next.records.At(0).Away = ""
	if back := next.taskMessage(0); back.GetState() != v1.TaskPaused || back.GetCompletedAt() != nil || back.GetNotice() != "" {
		t.Errorf("back, the task is %v", back)
	}
}

// TestStartThatDoesNotCountIsListed checks that a task that was started again under the same number shows where its program ran
// before, and why it was ended there. A dispatch that has started nothing and an attempt that continues elsewhere are not listed.
func TestStartThatDoesNotCountIsListed(t *testing.T) {
	t.Parallel()
	started := &historyv1.ExecuteResponse{Node: "a", StartedAt: timestamppb.New(time.Unix(2, 0))}
	for name, test := range map[string]struct {
		res       *historyv1.ExecuteResponse
		continues bool
		want      string
	}{
		"ended":       {res: started, want: "moved lease_lost on a"},
		"not started": {res: &historyv1.ExecuteResponse{Node: "a"}},
		"continues":   {res: started, continues: true},
	} {
		b := newTestStatus(t, 1)
		become(b, 0, dag.Record{State: v1.TaskAssigned, Claim: 1, Node: "a"}, time.Unix(1, 0))
		end := ending("a", v1.AttemptMoved, test.res)
		end.Ended.Reason, end.Ended.Error, end.Continues = v1.ReasonLeaseLost, "the control plane was away", test.continues
		b.EndAttempt(0, end, time.Unix(9, 0))
		become(b, 0, dag.Record{State: v1.TaskQueued, Claim: 1}, time.Unix(9, 0))
		become(b, 0, dag.Record{State: v1.TaskAssigned, Claim: 2, Node: "b"}, time.Unix(10, 0))
		task, got, why := b.taskMessage(0), "", ""
		for _, a := range task.GetAttempts() {
			got, why = fmt.Sprintf("%s %s on %s", a.GetState(), a.GetReason(), a.GetNode()), "the control plane was away"
		}
		if got != test.want || task.GetError() != why || task.GetAttempt() != 0 {
			t.Errorf("%s: attempts %q, error %q, attempt %d; want %q", name, got, task.GetError(), task.GetAttempt(), test.want)
		}
		become(b, 0, dag.Record{State: v1.TaskCompleted, Claim: 2, Node: "b"}, time.Unix(11, 0))
		if text := b.taskMessage(0).GetError(); text != "" {
			t.Errorf("%s: a completed task has the error %q", name, text)
		}
	}
}
