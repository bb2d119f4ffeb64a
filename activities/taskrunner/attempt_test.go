package taskrunner

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

func blocking() map[string][]fake.Step { return map[string][]fake.Step{"a": {{Block: true}}} }

// If the server does not answer until the lease is over, the attempt ends and does not count.
func TestLeaseIsLostWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]fake.Step{"polite": {Block: true}, "deaf": {Block: true, IgnoreTerm: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, map[string][]fake.Step{"a": {step}})
			b.heartbeat = 10 * time.Second
			e := b.start(t.Context(), request("a"))
			b.runs("a")
			b.server.say(func(int, *v1.ExecuteProgress) error { return errAway })
			away := time.Now()
			res := e.answer()
			want(t, res, "moved", "lease_lost")
			lease := b.fake.Calls()[0].Attempt.Lease
			if !lease.Lost() || step.IgnoreTerm && !lease.Over() {
				t.Error("it ended before its time")
			}
			if took := time.Since(away); took > b.heartbeat+stopGrace/2 {
				t.Errorf("took %v, the whole grace period", took)
			}
			if res.GetNode() != "n" || res.GetAssignedAt() == nil {
				t.Errorf("answer %v", res)
			}
		})
	}
}

// A transport error does not end an attempt, and the next answer renews the lease.
func TestTransportErrorsEndNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, blocking())
	b.heartbeat = 6 * time.Second
	e := b.start(t.Context(), request("a"))
	b.runs("a")
	before := b.fake.Calls()[0].Attempt.Lease.KillAt()
	failures := 0
	b.server.say(func(int, *v1.ExecuteProgress) error {
		if failures++; failures <= 3 {
			return errAway
		}
		return nil
	})
	eventually(t, "the lease is renewed", func() bool { return b.fake.Calls()[0].Attempt.Lease.KillAt() > before })
	if failures < 4 {
		t.Errorf("renewed after %d beats", failures)
	}
	b.fake.Release("a")
	want(t, e.answer(), "completed", "")
}

func TestServerEndsAnAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ err error }{
		"cancel":    {temporal.NewCanceledError()},
		"not found": {serviceerror.NewNotFound("no such activity")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, blocking())
			b.heartbeat = 15 * time.Second
			e := b.start(t.Context(), request("a"))
			b.runs("a")
			b.server.say(func(int, *v1.ExecuteProgress) error { return test.err })
			want(t, e.answer(), "cancelled", "cancelled")
		})
		t.Run(name+" before the start", func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.server.say(func(int, *v1.ExecuteProgress) error { return test.err })
			want(t, b.start(t.Context(), request("a")).answer(), "cancelled", "cancelled")
			if len(b.fake.Calls()) != 0 {
				t.Error("it has started nevertheless")
			}
		})
	}
}

// A cancelled attempt holds its lease while it cleans up.
func TestLeaseIsHeldWhileStopping(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"a": {{Block: true, IgnoreTerm: true}}})
	b.heartbeat = 6 * time.Second // the lease is over after 4.8 s
	e := b.start(t.Context(), request("a"))
	b.runs("a")
	b.server.say(func(int, *v1.ExecuteProgress) error { return temporal.NewCanceledError() })
	cancelled := time.Now()
	want(t, e.answer(), "cancelled", "cancelled")
	if took := time.Since(cancelled); took < stopGrace {
		t.Errorf("it was ended after %v, before the grace period was over", took)
	}
}

// unconfirmed returns how many heartbeats precede the start of the process.
func unconfirmed(beats []*v1.ExecuteProgress) (n int) {
	for _, p := range beats {
		if !p.GetSpawned() {
			n++
		}
	}
	return n
}

// The server is asked before each attempt starts, however quickly the tasks arrive.
func TestEveryAttemptIsConfirmedBeforeItStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for range 10 {
		before := len(b.server.heard())
		want(t, b.start(t.Context(), request("a")).answer(), "completed", "")
		if unconfirmed(b.server.heard()[before:]) < 1 {
			t.Fatal("a task started without a question")
		}
	}
	before := len(b.server.heard())
	want(t, b.start(t.Context(), batchOf(0, 1, 2)).answer(), "completed", "")
	if unconfirmed(b.server.heard()[before:]) < 1 {
		t.Error("a batch started without a question")
	}
}

// An attempt does not start if the server has given it to another node or its run has ended.
func TestAttemptThatTheServerDoesNotKnowDoesNotStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for range 5 {
		want(t, b.start(t.Context(), request("before")).answer(), "completed", "")
	}
	calls := len(b.fake.Calls())
	b.server.say(func(int, *v1.ExecuteProgress) error { return serviceerror.NewNotFound("activity") })
	for _, req := range []*v1.ExecuteRequest{request("a"), batchOf(0, 1)} {
		if res := b.start(t.Context(), req).answer(); res.GetStartedAt() != nil {
			t.Errorf("it answers %v", res)
		}
	}
	if got := len(b.fake.Calls()); got != calls {
		t.Errorf("%d have started nevertheless", got-calls)
	}
}

// An attempt does not start without an answer from the server.
func TestNoStartUnconfirmed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Timing.StartTimeout = 100 * time.Millisecond
	b.server.say(func(int, *v1.ExecuteProgress) error { return errAway })
	want(t, b.start(t.Context(), request("a")).answer(), "moved", "not_started")
	if len(b.fake.Calls()) != 0 {
		t.Error("it has started nevertheless")
	}
	b.Timing.StartTimeout, b.heartbeat = 0, time.Second
	want(t, b.start(t.Context(), request("a")).answer(), "moved", "lease_lost")
	b.Timing.StartTimeout, b.heartbeat = time.Hour, time.Hour
	b.server.say(func(int, *v1.ExecuteProgress) error { return nil })
	want(t, b.start(t.Context(), request("a")).answer(), "completed", "")
}

func TestNotStartedInTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Timing.StartTimeout = 2 * time.Second
	b.Room = testRoom(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	res := b.start(t.Context(), request("a")).answer()
	want(t, res, "moved", "no_room")
	if res.GetError() != "node n had no room within 2s" {
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

// An attempt that hangs before its start and ignores everything stops sending heartbeats, so that the server moves it.
func TestHangingAttemptFallsSilent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Timing.StartTimeout = 300 * time.Millisecond
	ctx, a := b.accept(t.Context(), delivery{heartbeat: 15 * time.Second}, request("a"))
	defer a.end()
	a.beating.Wait()
	if cause := context.Cause(ctx); cause != errNotStarted {
		t.Errorf("it ended for %v", cause)
	}
}

// The server learns soon that the process has started, even if the start took long.
func TestSpawnIsToldSoon(t *testing.T) {
	t.Parallel()
	b := newBench(t, blocking())
	b.heartbeat = 10 * time.Minute
	b.Room = testRoom(func(context.Context) error { time.Sleep(300 * time.Millisecond); return nil })
	e := b.start(t.Context(), request("a"))
	eventually(t, "a beat says spawned", func() bool {
		beats := b.server.heard()
		return len(beats) > 0 && beats[len(beats)-1].GetSpawned() && beats[len(beats)-1].GetStartedAt() != nil
	})
	b.fake.Release("a")
	want(t, e.answer(), "completed", "")
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
			endAfterTheLease(t, e)
		})
	}
}

// A program that finished its work before it was ended counts as long as the task cannot run elsewhere.
func TestWorkDoneBeforeTheLeaseIsOverCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.heartbeat = 2 * time.Second
	b.Executors = map[string]executor.Executor{"shell": idle{until: (*executor.Lease).Lost}}
	b.server.say(func(_ int, p *v1.ExecuteProgress) error {
		if p.GetSpawned() {
			return errAway
		}
		return nil
	})
	eventually(t, "it has completed", func() bool { // on a busy machine, not in time
		return b.start(t.Context(), request("a")).answer().GetState() == "completed"
	})
}

func endAfterTheLease(t *testing.T, e executor.Executor) {
	b := newBench(t, nil)
	b.heartbeat = 100 * time.Millisecond
	b.Executors = map[string]executor.Executor{"shell": e}
	b.server.say(func(_ int, p *v1.ExecuteProgress) error {
		if p.GetSpawned() {
			return errAway
		}
		return nil
	})
	var res *v1.ExecuteResponse
	eventually(t, "it has started", func() bool { // on a busy machine, not in time
		res = b.start(t.Context(), request("a")).answer()
		return res.GetStartedAt() != nil
	})
	want(t, res, "moved", "lease_lost")
	for key, err := range b.Store.Keys(t.Context(), "runs/r-1/results/") {
		t.Errorf("a record: %s, %v", key, err)
	}
}

// An attempt that completed before its node stalled leaves its record for the next dispatch.
func TestResultIsRecordedAfterTheLease(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	completed := func() *v1.ExecuteResponse {
		return &v1.ExecuteResponse{State: "completed", Result: &v1.TaskResult{Stdout: "said"}}
	}
	one := b.newAttempt(delivery{heartbeat: time.Millisecond}, request("a"))
	eventually(t, "the lease is over", one.lease.Over)
	res, err := b.report(t.Context(), one, completed())
	if err != nil {
		t.Fatal(err)
	}
	want(t, res, "moved", "lease_lost")
	if got := b.recordOf("a", 0).GetResult().GetStdout(); got != "said" {
		t.Errorf("the record says %q", got)
	}

	req := batchOf(0, 1)
	some := b.newAttempt(delivery{heartbeat: time.Millisecond}, req)
	row := b.newBatch(some)
	if err := row.add(t.Context(), &some.members[0], completed(), false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lease is over", some.lease.Over)
	want(t, row.report(t.Context(), some, &v1.ExecuteResponse{State: "completed"}), "moved", "lease_lost")
	var record v1.ExecuteResponse
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

func TestGPUsOfAnAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has   bool
		given []int32
		want  []int32
	}{
		"given":                      {has: true, given: []int32{1, 3}, want: []int32{1, 3}},
		"given, though none is seen": {given: []int32{1}, want: []int32{1}},
		"none":                       {has: true, want: []int32{}},
		"a node without":             {},
	} {
		n := &Node{HasGPUs: func() bool { return test.has }}
		got := grantedGPUs(&v1.ExecuteRequest{Gpus: test.given}, n.HasGPUs)
		if len(got) != len(test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
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
		req := &v1.ExecuteRequest{Chain: "chain", Execution: test.sent}
		followReset(req, test.execution)
		if req.GetChain() != test.want {
			t.Errorf("a request of %q for execution %q: chain %q, want %q", test.sent, test.execution, req.GetChain(), test.want)
		}
	}
}

// The heartbeats report what an attempt waits for, until the wait ends.
func TestHeartbeatReportsWhatAnAttemptWaitsFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, a := b.accept(t.Context(), delivery{heartbeat: time.Hour}, request("a"))
	defer a.end()
	a.announce("a short wait")()
	end := a.announce(phrase.StoreWait)
	eventually(t, "a beat says so", func() bool {
		beats := b.server.heard()
		return len(beats) > 0 && beats[len(beats)-1].GetNotice() == phrase.StoreWait
	})
	if end(); a.progress.Load().GetNotice() != "" {
		t.Errorf("afterwards the beats say %v", a.progress.Load())
	}
}
