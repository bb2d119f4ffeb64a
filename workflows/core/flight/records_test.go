package flight

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// ending returns the end of the first task's attempt on node "a".
func ending(state, reason, outcome string) End {
	return End{Place: Place{Node: "a"}, Ended: dag.Ended{State: state, Reason: reason}, Response: &historyv1.ExecuteResponse{}, Outcome: outcome}
}

// Suspicions are counted until an attempt ends, and only the last that is tolerated makes the task avoid its node.
func TestSuspicionsEndWithAnAttempt(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int32]string{0: "1a 2a 0 1a", 2: "1 2a 0 1"} {
		rs := NewRecords(&v1.RunOptions{SuspicionLimit: limit})
		var got []string
		for _, end := range []End{
			ending(v1.AttemptMoved, v1.ReasonNotStarted, v1.OutcomeSuspect), ending(v1.AttemptMoved, v1.ReasonNotPickedUp, v1.OutcomeSuspect),
			ending(v1.TaskFailed, "", v1.OutcomeDone), ending(v1.AttemptMoved, v1.ReasonNotStarted, v1.OutcomeSuspect),
		} {
			rs.Ended(end)
			got = append(got, fmt.Sprint(rs.Of(0).Suspicions)+rs.Of(0).Avoid)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with limit %d: %q, want %q", limit, got, want)
		}
	}
}

// Refusals are counted while they come in a row, and an unacknowledged attempt is noted once.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	rs := NewRecords(nil)
	for _, step := range []struct {
		outcome  string
		refusals int32
		avoid    string
	}{{"refused", 1, "a"}, {"refused", 2, "a"}, {"system", 0, "a"}, {"refused", 1, "a"}, {"done", 0, ""}, {"", 0, ""}, {"moved", 0, "a"}} {
		end := ending(v1.AttemptMoved, "", step.outcome)
		end.Unacknowledged = step.outcome == "system"
		if rs.Ended(end); rs.Of(0).Refusals != step.refusals || rs.Of(0).Avoid != step.avoid {
			t.Errorf("after %q: %+v; want %d refusals, avoid %q", step.outcome, rs.Of(0), step.refusals, step.avoid)
		}
	}
	for range 2 {
		end := ending(v1.TaskLost, "", v1.OutcomeSystem)
		end.Attempt, end.Unacknowledged = 3, true
		rs.Ended(end)
	}
	if got := rs.Of(0).Unacknowledged; len(got) != 2 || got[0] != 0 || got[1] != 3 {
		t.Errorf("nobody heard of %v", got)
	}
}

// Consecutive lost leases are counted until an attempt ends in another way.
func TestLostLeasesAreCounted(t *testing.T) {
	t.Parallel()
	rs := NewRecords(nil)
	for i, step := range []struct {
		state, reason string
		want          int32
	}{
		{v1.AttemptMoved, v1.ReasonLeaseLost, 1}, {v1.AttemptMoved, v1.ReasonDraining, 1}, {v1.AttemptMoved, v1.ReasonLeaseLost, 2},
		{v1.TaskLost, v1.ReasonNodeLost, 0}, {v1.AttemptMoved, v1.ReasonLeaseLost, 1}, {v1.TaskCompleted, "", 0},
	} {
		if rs.Ended(ending(step.state, step.reason, v1.OutcomeMoved)); rs.Of(0).LostLeases != step.want {
			t.Errorf("step %d: %d, want %d", i, rs.Of(0).LostLeases, step.want)
		}
	}
}

// A checkpoint lasts until the task completes, and an attempt outside the nodes continues until it ends.
func TestWhatAnAttemptLeavesForTheNext(t *testing.T) {
	t.Parallel()
	rs := NewRecords(nil)
	moved := ending(v1.AttemptMoved, v1.ReasonNodeLost, v1.OutcomeLost)
	moved.Continues, moved.Checkpoint = true, &historyv1.Checkpoint{Key: "half"}
	rs.Ended(moved)
	rs.Ended(ending(v1.AttemptMoved, v1.ReasonNoRoom, v1.OutcomeRefused))
	if r := rs.Of(0); !r.Continues || r.Checkpoint.GetKey() != "half" {
		t.Errorf("moved: %+v", r)
	}
	if rs.Ended(ending(v1.TaskFailed, "", v1.OutcomeDone)); rs.Of(0).Continues || rs.Of(0).Checkpoint == nil {
		t.Errorf("failed: %+v", rs.Of(0))
	}
	if rs.Ended(ending(v1.TaskCompleted, "", v1.OutcomeDone)); rs.Of(0).Checkpoint != nil {
		t.Errorf("completed: %+v", rs.Of(0))
	}
}

// The result is that of the newest attempt that has ended. A context update that the store has is left out.
func TestResultIsThatOfTheNewestAttempt(t *testing.T) {
	t.Parallel()
	rs := NewRecords(nil)
	if rs.Of(0).Result() != NothingRan {
		t.Error("a task that has not run has a result")
	}
	end, update := ending(v1.TaskFailed, "", v1.OutcomeDone), &structpb.Struct{}
	end.Response.Result = &v1.TaskResult{ExitCode: 3, ContextUpdate: update}
	rs.Ended(end)
	rs.Ended(ending(v1.AttemptMoved, v1.ReasonNoRoom, v1.OutcomeRefused))
	if r := rs.Of(0).Result(); r.GetExitCode() != 3 || r.GetOutput() == nil || r.GetContextUpdate() != update {
		t.Errorf("the result is %v", r)
	}
	end.Response.Record = "key"
	rs.Ended(end)
	if r := rs.Of(0); r.ResultKey != "key" || r.Result().GetExitCode() != 3 || r.Result().GetContextUpdate() != nil || end.Response.Result.ContextUpdate == nil {
		t.Errorf("the stored result is %q, %v", r.ResultKey, r.Result())
	}
	rs.Changed(1, dag.Record{State: v1.TaskFailed, ExitCode: 4}, false, true)
	if got := rs.Of(1).Result().GetExitCode(); got != 4 {
		t.Errorf("the exit code of a group is %d", got)
	}
}

// A task that is requeued after its end begins anew; what attempts have left, and who holds it, stays.
func TestRequeuedTaskBeginsAnew(t *testing.T) {
	t.Parallel()
	rs := NewRecords(nil)
	now := time.Unix(9, 0)
	r := rs.At(0)
	r.Queue(now)
	r.Queue(now.Add(time.Hour))
	r.ReadyAt, r.Refusals, r.LostLeases, r.Continues, r.Lock, r.CacheKey, r.Uncached = now, 1, 2, true, "l", "k", "u"
	r.Held, r.Unacknowledged, r.Avoid = true, []int32{1}, "a"
	rs.Changed(0, dag.Record{State: v1.TaskQueued}, true, false)
	if rs.Of(0).Requeues != 0 || !rs.Of(0).QueuedAt.Equal(now) {
		t.Errorf("it has not ended: %+v", rs.Of(0))
	}
	rs.Changed(0, dag.Record{State: v1.TaskDeadLetter}, true, false)
	rs.Changed(0, dag.Record{State: v1.TaskQueued}, true, false)
	got := rs.Of(0)
	if got.Requeues != 1 || !got.QueuedAt.IsZero() || !got.ReadyAt.IsZero() || got.Refusals+got.LostLeases != 0 || got.Continues || got.Lock+got.CacheKey+got.Uncached != "" {
		t.Errorf("requeued: %+v", got)
	}
	if !got.Held || len(got.Unacknowledged) != 1 || got.Avoid != "a" {
		t.Errorf("it keeps %+v", got)
	}
}

// A task that ends in a later execution than the one that has evaluated its cache key is cached, too.
func TestCacheKeyIsCarried(t *testing.T) {
	t.Parallel()
	p := begin(t, tasks("train"))
	p.records.At(0).CacheKey = "k"
	rs := NewRecords(nil)
	if rs.Restore(0, p.saveAll().GetTasks()["train"], false); rs.Of(0).CacheKey != "k" {
		t.Errorf("the record is %+v", rs.Of(0))
	}
}
