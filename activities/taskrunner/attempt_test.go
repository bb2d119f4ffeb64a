package taskrunner

import (
	"context"
	"errors"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func blocking() map[string][]fake.Step { return map[string][]fake.Step{"a": {{Block: true}}} }

func TestNotStartedInTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Timing.StartTimeout = 200 * time.Millisecond
	b.Room = testRoom(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	res := b.start(t.Context(), request("a")).answer()
	want(t, res, "moved", "no_room")
	if res.GetError() != "node n had no room within 200ms" {
		t.Errorf("says %q", res.GetError())
	}
	// The room fails at once, or only when the start time-out has passed.
	b.Room = testRoom(func(ctx context.Context) error { <-ctx.Done(); return errors.New("more than the machine has") })
	res = b.start(t.Context(), request("a")).answer()
	want(t, res, "moved", "no_room")
	if res.GetError() != "more than the machine has" {
		t.Errorf("says %q", res.GetError())
	}
}

// idle is an executor that does nothing until a condition on its lease holds, and then exits by itself.
type idle struct {
	executor.Executor
	until func(*executor.Lease) bool
	exit  int
}

func (i idle) Run(_ context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	spawned()
	for !i.until(a.Lease) {
		time.Sleep(time.Millisecond)
	}
	return executor.Result{ExitCode: i.exit}, nil
}

// A result counts neither if the program ends by itself after the lease is over, nor if it fails after the lease is lost:
// a watchdog may have ended it without this stalled process noticing.
func TestEndAfterTheLeaseDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]idle{
		"completes too late": {until: (*executor.Lease).Over},
		"fails":              {until: (*executor.Lease).Lost, exit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			e.Executor = b.fake
			b.Executors = map[string]executor.Executor{"shell": e}
			want(t, b.losesLease(request("a")), "moved", "lease_lost")
			for key, err := range b.Store.Keys(t.Context(), "runs/r-1/results/") {
				t.Errorf("a record: %s, %v", key, err)
			}
		})
	}
}

// A program that finished its work before it was ended counts as long as the task cannot run elsewhere.
func TestWorkDoneBeforeTheLeaseIsOverCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Executors = map[string]executor.Executor{"shell": idle{Executor: b.fake, until: (*executor.Lease).Lost}}
	testneeds.Await(t, "it has completed", func() bool { // on a busy machine, not in time
		return b.losesLease(request("a")).GetState() == "completed"
	})
}

// An attempt that completed before its node stalled leaves its record for the next dispatch.
func TestResultIsRecordedAfterTheLease(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	completed := func() *historyv1.ExecuteResponse {
		return &historyv1.ExecuteResponse{State: "completed", Result: &v1.TaskResult{Stdout: "said"}}
	}
	one := b.newAttempt(delivery{activityRef: activityRef{heartbeat: time.Millisecond}}, request("a"))
	testneeds.Await(t, "the lease is over", one.beats.lease.Over)
	res, err := b.report(t.Context(), one, completed())
	if err != nil {
		t.Fatal(err)
	}
	want(t, res, "moved", "lease_lost")
	if got := b.recordOf("a", 0).GetResult().GetStdout(); got != "said" {
		t.Errorf("the record says %q", got)
	}

	req := batchOf(0, 1)
	some := b.newAttempt(delivery{activityRef: activityRef{heartbeat: time.Millisecond}}, req)
	row := b.newBatch(some)
	if err := row.add(t.Context(), &some.members[0], completed(), false); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "the lease is over", some.beats.lease.Over)
	want(t, row.report(t.Context(), some, &historyv1.ExecuteResponse{State: "completed"}), "moved", "lease_lost")
	var record historyv1.ExecuteResponse
	if err := b.Store.GetMessage(t.Context(), row.key, &record); err != nil || len(record.GetBatch()) != 1 {
		t.Errorf("the record is %v, %v", &record, err)
	}
}

func TestOtherIncarnation(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Incarnation = "second"
	req := request("a")
	req.Incarnation = "first"
	want(t, b.start(t.Context(), req).answer(), "moved", "incarnation")
	if len(b.fake.Calls()) != 0 {
		t.Error("it has started nevertheless")
	}
	for _, same := range []string{"second", ""} {
		req.Incarnation = same
		want(t, b.start(t.Context(), req).answer(), "completed", "")
	}
}

func TestAnswerHasTheNodesTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"a": {{Duration: 20 * time.Millisecond}}, "b": {fake.Exit(3)}})
	for _, task := range []string{"a", "b"} {
		before := time.Now()
		res := b.start(t.Context(), request(task)).answer()
		times := []time.Time{before, res.GetAssignedAt().AsTime(), res.GetStartedAt().AsTime(), res.GetCompletedAt().AsTime(), time.Now()}
		for i := range len(times) - 1 {
			if times[i].After(times[i+1]) {
				t.Errorf("the order is wrong from %d on: %v", i, times)
			}
		}
		if res.GetNode() != "n" {
			t.Errorf("ran on %q", res.GetNode())
		}
	}
}

// If a reset leaves an activity to the new execution, the attempt uses no data of the terminated one.
func TestActivityLeftByAResetWorksForTheNewChain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ sent, execution, want string }{
		{"old", "old", "chain"},
		{"old", "new", "new"},
		{"", "new", "chain"},
	} {
		req := &historyv1.ExecuteRequest{Chain: "chain", Execution: test.sent}
		followReset(req, test.execution)
		if req.GetChain() != test.want {
			t.Errorf("a request of %q for execution %q: chain %q, want %q", test.sent, test.execution, req.GetChain(), test.want)
		}
	}
}
