package taskrunner

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// detach detaches the attempt of a task, and returns how many attempts the node has refused to detach.
func (b *bench) detach(task string, lease time.Duration) (refused int) {
	b.t.Helper()
	res, err := b.Detach(b.t.Context(), &historyv1.DetachRequest{
		RunId: "r-1", Attempts: []*historyv1.ClaimRef{{Task: task, Claim: 1}}, Lease: durationpb.New(lease),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return len(res.GetOthers())
}

// leave detaches an attempt and lets the server forget its activity.
func (b *bench) leave(e *execution, task, token string) {
	b.t.Helper()
	if n := b.detach(task, time.Hour); n != 0 {
		b.t.Fatalf("%d attempts are not detached", n)
	}
	want(b.t, e.answer(), "detached", "")
	b.server.close(token)
}

// reattachment returns a request that reattaches an attempt on the node.
func reattachment(req *historyv1.ExecuteRequest) *historyv1.ExecuteRequest {
	req = proto.CloneOf(req)
	req.Reattach, req.Spec = true, nil
	return req
}

// lease returns the lease of the newest attempt.
func (b *bench) lease() *executor.Lease {
	calls := b.fake.Calls()
	return calls[len(calls)-1].Attempt.Lease
}

// detachInTime starts task a under a short lease and detaches the attempt while it runs. It tries again if a busy machine
// loses the lease before.
func (b *bench) detachInTime(alone time.Duration) {
	b.t.Helper()
	b.heartbeat = time.Second
	testneeds.Await(b.t, "it is detached in time", func() bool {
		e := b.startAs(b.t.Context(), "one", request("a"))
		running, cancel := context.WithTimeout(b.t.Context(), patience)
		go func() { <-e.done; cancel() }()
		if b.fake.AwaitRunning(running, "a") == nil {
			b.detach("a", alone)
		}
		return e.answer().GetState() == "detached"
	})
}

// An attempt continues from one activity to the next. Its lease is long once the server knows that the first activity has
// left, but ends before its run stops waiting. Its end is the same as without a detachment. The end of the first activity's context does not end the attempt.
func TestDetachedAttemptIsReattached(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"a": {{Stdout: "once\n", Block: true, Output: "n=1"}}})
	b.heartbeat = time.Minute
	activity, endActivity := context.WithCancel(t.Context())
	first := b.startAs(activity, "one", request("a"))
	b.runs("a")
	b.leave(first, "a", "one")
	endActivity()
	left := func() time.Duration { return b.lease().KillAt().Sub(executor.Now()) }
	testneeds.Await(t, "the lease is a long one", func() bool { return left() > 40*time.Minute })
	if left() > 48*time.Minute { // a clock that is 10% slow ends it after 53
		t.Errorf("it may run for %v of the hour for which its run waits", left())
	}
	if n := b.detach("a", time.Hour); n != 0 {
		t.Error("a second Detach is refused")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if b.AwaitIdle(ctx) == nil {
		t.Error("the node is idle with a detached attempt")
	}
	second := b.startAs(t.Context(), "two", reattachment(request("a")))
	testneeds.Await(t, "the next activity beats", func() bool { return b.server.hears() == "two" })
	if beats := b.server.heard(); !beats[len(beats)-1].GetSpawned() {
		t.Error("it does not say that the process runs")
	}
	b.leave(second, "a", "two")
	third := b.startAs(t.Context(), "three", reattachment(request("a")))
	b.fake.Release("a")
	res := third.answer()
	want(t, res, "completed", "")
	if len(b.fake.Calls()) != 1 || res.GetResult().GetStdout() != "once\n" || res.GetStartedAt() == nil || b.live() != 0 {
		t.Errorf("%d executions, %d are left, answer %v", len(b.fake.Calls()), b.live(), res)
	}
}

// An attempt that ends unattended keeps its answer, even if it failed.
func TestEndWhileDetached(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"a": {{Block: true, Result: executor.Result{ExitCode: 3}}}})
	first := b.startAs(t.Context(), "one", request("a"))
	b.runs("a")
	b.leave(first, "a", "one")
	b.fake.Release("a")
	testneeds.Await(t, "it has ended", func() bool { return b.detach("a", time.Hour) == 1 })
	if b.live() != 1 {
		t.Error("the node has forgotten it")
	}
	done, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	waited := make(chan struct{})
	go func() { b.AwaitDetached(done); close(waited) }()
	want(t, b.startAs(t.Context(), "two", reattachment(request("a"))).answer(), "failed", "exit_code")
	<-waited
	if done.Err() != nil || b.live() != 0 {
		t.Errorf("%d are left", b.live())
	}
}

// The lease stays short while the server may not have the answer of the first activity: the server may give the task to
// another node.
func TestDetachedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, blocking())
	b.server.say(awayOnceSpawned)
	b.detachInTime(time.Hour)
	b.AwaitEnds(t.Context())
	if !b.lease().Lost() {
		t.Error("it ended before its lease was lost")
	}
	want(t, b.startAs(t.Context(), "two", reattachment(request("a"))).answer(), "moved", "lease_lost")
}

// An attempt that no activity reattaches ends with its long lease.
func TestLeaseEndsWithoutReattachment(t *testing.T) {
	t.Parallel()
	b := newBench(t, blocking())
	b.detachInTime(time.Second)
	b.server.close("one")
	testneeds.Await(t, "it is forgotten", func() bool { return b.live() == 0 })
	if !b.lease().Lost() {
		t.Error("it ended before its lease was lost")
	}
	res := b.startAs(t.Context(), "two", reattachment(request("a"))).answer()
	want(t, res, "lost", "node_lost")
}

// An attempt that is detached while it waits does not start before it is reattached.
func TestDetachedBeforeItsStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.heartbeat = time.Minute
	var open chan<- struct{}
	b.Room, open = waitingRoom()
	first := b.startAs(t.Context(), "one", request("a"))
	testneeds.Await(t, "it is there", func() bool { return b.live() == 1 })
	b.server.close("one") // otherwise the server could still confirm the attempt
	b.leave(first, "a", "one")
	close(open)
	time.Sleep(50 * time.Millisecond) // long enough for a wrong start; on a slow machine the test sees less
	if n := len(b.fake.Calls()); n != 0 {
		t.Errorf("%d executions", n)
	}
	want(t, b.startAs(t.Context(), "two", reattachment(request("a"))).answer(), "completed", "")
}

func TestStopOfDetached(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stop          func(b *bench, req *historyv1.ExecuteRequest)
		state, reason string
	}{
		"by its run":          {func(_ *bench, req *historyv1.ExecuteRequest) { req.Stop = true }, "cancelled", "cancelled"},
		"by a drain":          {func(b *bench, _ *historyv1.ExecuteRequest) { b.BeginDrain(time.Now(), "") }, "moved", "draining"},
		"by its worker":       {func(b *bench, _ *historyv1.ExecuteRequest) { close(b.stopping) }, "moved", "draining"},
		"once reattached too": {func(*bench, *historyv1.ExecuteRequest) {}, "cancelled", "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, blocking())
			first := b.startAs(t.Context(), "one", request("a"))
			b.runs("a")
			b.leave(first, "a", "one")
			req := reattachment(request("a"))
			test.stop(b, req)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e := b.startAs(ctx, "two", req)
			if name == "once reattached too" {
				testneeds.Await(t, "it is reattached", func() bool { return b.server.hears() == "two" })
				cancel()
			}
			want(t, e.answer(), test.state, test.reason)
		})
	}
}

// An attempt that is not on the node is lost, unless it has left a record.
func TestOrphan(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	want(t, b.start(t.Context(), reattachment(request("a"))).answer(), "lost", "node_lost")
	if b.detach("a", time.Hour) != 1 {
		t.Error("it is detached although it is not there")
	}
	record := &historyv1.ExecuteResponse{State: "completed", Node: "n", Result: &v1.TaskResult{Stdout: "kept"}}
	if err := b.Store.PutMessage(t.Context(), storekey.Result("r-1", 0, "a", 0), record); err != nil {
		t.Fatal(err)
	}
	res := b.start(t.Context(), reattachment(request("a"))).answer()
	want(t, res, "completed", "")
	if res.GetResult().GetStdout() != "kept" || len(b.fake.Calls()) != 0 {
		t.Errorf("answer %v", res)
	}

	// In a batch, the members that have ended count.
	req := batchOf(0, 1, 2)
	record = &historyv1.ExecuteResponse{Node: "n", Batch: []*historyv1.MemberResult{{Index: 0}, {Index: 1, State: "failed"}}}
	if err := b.Store.PutMessage(t.Context(), batchKey(req), record); err != nil {
		t.Fatal(err)
	}
	res = b.start(t.Context(), reattachment(req)).answer()
	want(t, res, "lost", "node_lost")
	if len(res.GetBatch()) != 1 || res.GetBatch()[0].GetIndex() != 0 {
		t.Errorf("answer %v", res)
	}
}

// broken is an executor that panics.
type broken struct{ executor.Executor }

func (broken) Run(context.Context, executor.Attempt, func()) (executor.Result, error) {
	panic("a fault")
}

func TestFaultEndsOneAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Executors["shell"] = broken{b.fake}
	e := b.start(t.Context(), request("a"))
	select {
	case <-e.done:
	case <-time.After(patience):
		t.Fatal("no answer comes")
	}
	if e.err == nil || !strings.Contains(e.err.Error(), "a fault") || b.live() != 0 {
		t.Errorf("answer %v, error %v", e.res, e.err)
	}
}
