package taskrunner

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
)

// waitingRoom returns a Room that has no room until the returned channel is closed, and that channel.
func waitingRoom() (testRoom, chan<- struct{}) {
	open := make(chan struct{})
	return func(ctx context.Context) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, open
}

func (b *bench) live() int {
	b.attempts.mu.Lock()
	defer b.attempts.mu.Unlock()
	return len(b.attempts.live)
}

// A draining node hands back waiting and new attempts, and lets running ones finish.
func TestDrain(t *testing.T) {
	t.Parallel()
	b := newBench(t, blocking())
	running := b.start(t.Context(), request("a"))
	b.runs("a")
	var open chan<- struct{}
	b.Room, open = waitingRoom()
	waiting := b.start(t.Context(), request("b"))
	testneeds.Await(t, "both are there", func() bool { return b.live() == 2 })

	b.BeginDrain(time.Time{}, "")
	res := waiting.answer()
	want(t, res, "moved", "draining")
	if res.GetError() != "node n is draining" {
		t.Errorf("says %q", res.GetError())
	}
	b.BeginDrain(time.Time{}, "new disks")
	res = b.start(t.Context(), request("c")).answer()
	want(t, res, "moved", "draining")
	if res.GetError() != "node n is draining: new disks" {
		t.Errorf("says %q", res.GetError())
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("enough"))
	defer cancel()
	if err := b.AwaitIdle(ctx); err == nil || err.Error() != "enough" {
		t.Errorf("idle with a task that runs: %v", err)
	}
	idle := make(chan error, 2)
	for range cap(idle) {
		go func() { idle <- b.AwaitIdle(t.Context()) }()
	}
	b.fake.Release("a")
	want(t, running.answer(), "completed", "")
	for range cap(idle) {
		if err := <-idle; err != nil {
			t.Error(err)
		}
	}
	if err := b.AwaitIdle(t.Context()); err != nil {
		t.Error(err)
	}

	b.EndDrain()
	b.EndDrain()
	close(open)
	want(t, b.start(t.Context(), request("d")).answer(), "completed", "")
	if n := len(b.fake.Calls()); n != 2 {
		t.Errorf("%d attempts ran, want those of a and d", n)
	}
}

// TestRefusalHandsWaitingAttemptsBack checks that a node that refuses tasks lets what runs finish, and that neither a drain nor its end ends the
// refusal.
func TestRefusalHandsWaitingAttemptsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, blocking())
	running := b.start(t.Context(), request("a"))
	b.runs("a")
	b.Room, _ = waitingRoom()
	waiting := b.start(t.Context(), request("b"))
	testneeds.Await(t, "both are there", func() bool { return b.live() == 2 })
	b.BeginRefusal(time.Time{}, "in use for a game")
	res := waiting.answer()
	want(t, res, "moved", "draining")
	if res.GetError() != "node n is in use for a game" {
		t.Errorf("says %q", res.GetError())
	}
	b.BeginDrain(time.Time{}, "")
	if res := b.start(t.Context(), request("c")).answer(); res.GetError() != "node n is draining" {
		t.Errorf("says %q", res.GetError())
	}
	b.EndDrain()
	want(t, b.start(t.Context(), request("d")).answer(), "moved", "draining")
	b.fake.Release("a")
	want(t, running.answer(), "completed", "")
}

// TestRefusalWithADeadlineMovesWhatRuns checks the deadline alone, and with a drain that has a later one or none.
func TestRefusalWithADeadlineMovesWhatRuns(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]func(*bench){
		"alone":                    func(*bench) {},
		"with a drain":             func(b *bench) { b.BeginDrain(time.Time{}, "") },
		"with a drain for an hour": func(b *bench) { b.BeginDrain(time.Now().Add(time.Hour), "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, blocking())
			e := b.start(t.Context(), request("a"))
			b.runs("a")
			b.BeginRefusal(time.Now().Add(50*time.Millisecond), "in use for a game")
			drain(b)
			want(t, e.answer(), "moved", "draining")
		})
	}
	t.Run("taken back", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, blocking())
		e := b.start(t.Context(), request("a"))
		b.runs("a")
		b.BeginRefusal(time.Now().Add(time.Minute), "in use for a game")
		timer := b.attempts.drain.deadline
		b.EndRefusal()
		timer.Reset(0)
		time.Sleep(50 * time.Millisecond)
		b.fake.Release("a")
		want(t, e.answer(), "completed", "")
	})
}

func TestDrainDeadline(t *testing.T) {
	t.Parallel()
	for name, deadlines := range map[string][]time.Duration{
		"now":    {-time.Second},
		"soon":   {50 * time.Millisecond},
		"sooner": {time.Hour, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, blocking())
			e := b.start(t.Context(), request("a"))
			b.runs("a")
			for _, d := range deadlines {
				b.BeginDrain(time.Now().Add(d), "")
			}
			res := e.answer()
			want(t, res, "moved", "draining")
			if res.GetStartedAt() == nil {
				t.Error("it does not say that it ran")
			}
		})
	}
	t.Run("taken back", func(t *testing.T) {
		t.Parallel()
		for name, back := range map[string]func(*bench){
			"by its end":     func(b *bench) { b.EndDrain() },
			"by a later":     func(b *bench) { b.BeginDrain(time.Now().Add(time.Hour), "") },
			"by one without": func(b *bench) { b.BeginDrain(time.Time{}, "") },
		} {
			b := newBench(t, blocking())
			e := b.start(t.Context(), request("a"))
			b.runs("a")
			b.BeginDrain(time.Now().Add(time.Minute), "")
			timer := b.attempts.drain.deadline
			back(b)
			timer.Reset(0) // it was about to fire
			time.Sleep(50 * time.Millisecond)
			b.fake.Release("a")
			if res := e.answer(); res.GetState() != "completed" {
				t.Errorf("%s: got %v", name, res)
			}
			b.EndDrain()
		}
	})
}

// A drain at any moment leaves each attempt either completed or handed back, and AwaitIdle waits for every running one.
func TestDrainRace(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for range 20 {
		var all []*execution
		for range 20 {
			all = append(all, b.start(t.Context(), request("a")))
		}
		b.BeginDrain(time.Time{}, "")
		if err := b.AwaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := len(b.fake.Calls())
		for _, e := range all {
			if res := e.answer(); res.GetState() != "completed" && res.GetReason() != "draining" {
				t.Errorf("got %v", res)
			}
		}
		if after := len(b.fake.Calls()); after != before {
			t.Errorf("%d attempts started while the node drained", after-before)
		}
		b.EndDrain()
	}
}

// TestNodeKnowsTheLongestGrace checks that a node which stops knows how long its attempts may take to end.
func TestNodeKnowsTheLongestGrace(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"usual": {{Block: true}}, "slow": {{Block: true}}, "quick": {{Block: true}}})
	extra := func(want time.Duration) {
		t.Helper()
		if got := b.ExtraGrace(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	start := func(task string, claim int32, grace time.Duration) *execution {
		req := request(task)
		req.Claim, req.StopGrace = claim, durationpb.New(grace)
		e := b.start(t.Context(), req)
		b.runs(task)
		return e
	}
	usual, quick := start("usual", 1, 0), start("quick", 2, time.Second)
	extra(0)
	slow := start("slow", 3, time.Minute)
	extra(50 * time.Second)
	b.fake.Release("slow")
	want(t, slow.answer(), "completed", "")
	extra(0)
	for task, e := range map[string]*execution{"usual": usual, "quick": quick} {
		b.fake.Release(task)
		want(t, e.answer(), "completed", "")
	}
	for _, call := range b.fake.Calls() {
		if call.Task == "usual" && (call.Attempt.Signal != "" || call.Attempt.Grace != 10*time.Second) {
			t.Errorf("a task without stop is ended with %+v", call.Attempt.Ending)
		}
	}
}
