package taskrunner

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/phrase"
)

// If the server does not answer until the lease is over, the attempt ends and does not count. The logs of the worker and of the
// attempt say why it ended.
func TestLeaseIsLostWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]fake.Step{"polite": {Block: true}, "deaf": {Block: true, IgnoreTerm: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, map[string][]fake.Step{"a": {step}})
			messages := &messageLog{}
			b.Logger = slog.New(slog.NewTextHandler(messages, nil))
			res := b.losesLease(request("a"))
			want(t, res, "moved", "lease_lost")
			if lease := b.lease(); !lease.Lost() || step.IgnoreTerm && !lease.Over() {
				t.Error("it ended before its time")
			}
			if took := res.GetCompletedAt().AsTime().Sub(res.GetStartedAt().AsTime()); took > stopGrace {
				t.Errorf("took %v, the whole grace period", took)
			}
			if text := messages.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "its lease ended: no heartbeat was acknowledged by Temporal\" run=r-1 task=a attempt=0 for=") {
				t.Errorf("the worker logs %q", text)
			}
			if text := b.logOf(attemptLog); text != "[switchyard: ended by node n: the server did not answer for too long]\n" {
				t.Errorf("the log of the attempt is %q", text)
			}
			if res.GetNode() != "n" || res.GetAssignedAt() == nil || res.GetCompletedAt() == nil {
				t.Errorf("answer %v", res)
			}
		})
	}
}

// A transport error does not end an attempt, and the next answer renews the lease.
func TestTransportErrorsEndNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, blocking())
	b.heartbeat, b.Timing.BeatInterval = 15*time.Second, 100*time.Millisecond
	e := b.start(t.Context(), request("a"))
	b.runs("a")
	var beats atomic.Int32
	b.server.say(func(int, *historyv1.ExecuteProgress) error {
		if beats.Add(1) <= 3 {
			return errAway
		}
		return nil
	})
	testneeds.Await(t, "a beat has failed", func() bool { return beats.Load() > 0 })
	before := b.fake.Calls()[0].Attempt.Lease.KillAt()
	testneeds.Await(t, "the lease is renewed", func() bool { return b.fake.Calls()[0].Attempt.Lease.KillAt() > before })
	if n := beats.Load(); n < 4 {
		t.Errorf("renewed after %d beats", n)
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
			b.heartbeat, b.Timing.BeatInterval = time.Minute, time.Second
			e := b.start(t.Context(), request("a"))
			b.runs("a")
			b.server.say(func(int, *historyv1.ExecuteProgress) error { return test.err })
			want(t, e.answer(), "cancelled", "cancelled")
		})
		t.Run(name+" before the start", func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.server.say(func(int, *historyv1.ExecuteProgress) error { return test.err })
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
	grace := make(chan struct{})
	b.EndGrace, b.Timing.BeatInterval = grace, 10*time.Millisecond
	e := b.start(t.Context(), request("a"))
	b.runs("a")
	var cancels atomic.Int32
	b.server.say(func(int, *historyv1.ExecuteProgress) error { cancels.Add(1); return temporal.NewCanceledError() })
	testneeds.Await(t, "it is cancelled", func() bool { return cancels.Load() > 0 })
	before := b.lease().KillAt()
	testneeds.Await(t, "its lease is renewed", func() bool { return b.lease().KillAt() > before && cancels.Load() > 1 })
	close(grace)
	want(t, e.answer(), "cancelled", "cancelled")
}

// unconfirmed returns how many heartbeats precede the start of the process.
func unconfirmed(beats []*historyv1.ExecuteProgress) (n int) {
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

// An attempt does not start without an answer from the server.
func TestNoStartUnconfirmed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Timing.StartTimeout = 100 * time.Millisecond
	b.server.say(func(int, *historyv1.ExecuteProgress) error { return errAway })
	want(t, b.start(t.Context(), request("a")).answer(), "moved", "not_started")
	if len(b.fake.Calls()) != 0 {
		t.Error("it has started nevertheless")
	}
	b.Timing.StartTimeout, b.heartbeat = 0, time.Second
	want(t, b.start(t.Context(), request("a")).answer(), "moved", "lease_lost")
	b.Timing.StartTimeout, b.heartbeat = time.Hour, time.Hour
	b.server.say(func(int, *historyv1.ExecuteProgress) error { return nil })
	want(t, b.start(t.Context(), request("a")).answer(), "completed", "")
}

// An attempt that hangs before its start and ignores everything stops sending heartbeats, so that the server moves it.
func TestHangingAttemptFallsSilent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Timing.StartTimeout = 300 * time.Millisecond
	ctx, a := b.accept(t.Context(), delivery{activityRef: activityRef{heartbeat: time.Hour}}, request("a"))
	defer a.end()
	a.beats.loop.Wait()
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
	testneeds.Await(t, "a beat says spawned", func() bool {
		beats := b.server.heard()
		return len(beats) > 0 && beats[len(beats)-1].GetSpawned() && beats[len(beats)-1].GetStartedAt() != nil
	})
	b.fake.Release("a")
	want(t, e.answer(), "completed", "")
}

// The heartbeats report what an attempt waits for, until the wait ends.
func TestHeartbeatReportsWhatAnAttemptWaitsFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, a := b.accept(t.Context(), delivery{activityRef: activityRef{heartbeat: time.Hour}}, request("a"))
	defer a.end()
	a.progress.announce("a short wait")()
	end := a.progress.announce(phrase.StoreWait)
	testneeds.Await(t, "a beat says so", func() bool {
		beats := b.server.heard()
		return len(beats) > 0 && beats[len(beats)-1].GetNotice() == phrase.StoreWait
	})
	if end(); a.progress.Load().GetNotice() != "" {
		t.Errorf("afterwards the beats say %v", a.progress.Load())
	}
}
