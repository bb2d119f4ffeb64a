package executortest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// quiet is how long a ticking program must be silent to count as suspended.
const quiet = 500 * time.Millisecond

// steer checks executors that can suspend attempts.
func (h Harness) steer(t *testing.T) {
	exec := h.New(t)
	e := exec.Capabilities().Steer
	if e == nil {
		t.Skip("this executor suspends nothing")
	}
	t.Run("no attempt", func(t *testing.T) {
		for _, do := range []func(context.Context, string) error{e.Pause, e.Resume} {
			if err := do(t.Context(), "none/such/c1"); !errors.Is(err, executor.ErrNotRunning) {
				t.Errorf("error %v, want ErrNotRunning", err)
			}
		}
	})
	t.Run("pause and resume", func(t *testing.T) {
		a, c := h.attempt(t, Program{Tick: true, Child: true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := h.begin(t, ctx, exec, a, c)
		for range 2 {
			c.awaitMore(t, "tick", "tock")
			for range 2 { // the second call is a no-op
				h.must(t, e.Pause(t.Context(), a.ID))
			}
			c.awaitSilence(t)
			for range 2 {
				h.must(t, e.Resume(t.Context(), a.ID))
			}
		}
		c.awaitMore(t, "tick", "tock")
		cancel()
		if r := <-ended; !r.Stopped || r.Signal != "SIGTERM" {
			t.Errorf("result %+v, want one stopped by SIGTERM", r)
		}
		for _, do := range []func(context.Context, string) error{e.Pause, e.Resume} {
			if err := do(t.Context(), a.ID); !errors.Is(err, executor.ErrNotRunning) {
				t.Errorf("error %v after its end, want ErrNotRunning", err)
			}
		}
	})
	t.Run("stopped while suspended", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "ready", OnTerm: "bye", Tick: true, Code: 7})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a.Grace = patience
		ended := h.begin(t, ctx, exec, a, c)
		c.awaitMore(t, "tick")
		h.must(t, e.Pause(t.Context(), a.ID))
		cancel()
		if r := <-ended; !r.Stopped || r.ExitCode != 7 || !strings.HasSuffix(c.out.String(), "bye") {
			t.Errorf("result %+v, want one that has received SIGTERM", r)
		}
	})
}

func (h Harness) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin runs an attempt in the background. The returned channel receives its
// result.
func (h Harness) begin(t *testing.T, ctx context.Context, e executor.Executor, a executor.Attempt, c *capture) <-chan executor.Result {
	ended := make(chan executor.Result, 1)
	go func() {
		defer close(ended)
		r, err := e.Run(ctx, a, c.spawned)
		if err != nil {
			t.Errorf("run: %v", err)
		}
		ended <- r
	}()
	return ended
}

// awaitMore waits until the attempt has printed each of some words once more.
func (c *capture) awaitMore(t *testing.T, words ...string) {
	t.Helper()
	had := c.out.String()
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		now := c.out.String()
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Count(now, word) == strings.Count(had, word) }) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("not each of %q is printed again", words)
		}
	}
}

// awaitSilence waits until the attempt has printed nothing for a while.
func (c *capture) awaitSilence(t *testing.T) {
	t.Helper()
	had, since := len(c.out.String()), time.Now()
	for until := time.Now().Add(patience); time.Since(since) < quiet; time.Sleep(5 * time.Millisecond) {
		if now := len(c.out.String()); now != had {
			had, since = now, time.Now()
		}
		if time.Now().After(until) {
			t.Fatal("it continues although it is suspended")
		}
	}
}
