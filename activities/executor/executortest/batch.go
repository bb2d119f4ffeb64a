package executortest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// batch checks executors that run attempts in batches.
func (h Harness) batch(t *testing.T) {
	if h.New(t).Capabilities().Batch == nil {
		t.Skip("this executor runs no batches")
	}
	atOnce(t, map[string]func(*testing.T){
		"each for itself":         h.batchApart,
		"nothing is left between": h.batchClean,
		"one is stopped":          h.batchStop,
		"lost lease":              h.batchLease,
		"empty":                   h.batchEmpty,
	})
}

// beginBatch begins a batch with the id and the lease of an attempt. Its cleanup closes
// the batch and checks that nothing is left.
func (h Harness) beginBatch(t *testing.T, a executor.Attempt) executor.Batch {
	t.Helper()
	row, err := h.New(t).Capabilities().Batch(a.ID, a.Lease)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.nothingLeft(t, a.ID) })
	t.Cleanup(func() {
		if err := row.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return row
}

// next runs the next attempt of a batch and fails the test on an error.
func (h Harness) next(t *testing.T, ctx context.Context, row executor.Batch, p Program) (executor.Result, *capture) {
	t.Helper()
	a, c := h.attempt(t, p)
	r, err := row.Run(ctx, a, c.spawned)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return r, c
}

func (h Harness) batchApart(t *testing.T) {
	first, _ := h.attempt(t, Program{})
	row := h.beginBatch(t, first)
	for i, p := range []Program{
		{Out: "one", Err: "uno"}, {Code: 3}, {Out: "three"}, {Kill: "KILL"}, {Err: "five"},
		{Flood: 300_000}, {Out: "seven"},
	} {
		r, c := h.next(t, t.Context(), row, p)
		code := p.Code
		if p.Kill != "" {
			code = 137
		}
		if r.ExitCode != code || r.Stopped || c.spawns.Load() != 1 {
			t.Errorf("attempt %d: %+v after %d starts", i, r, c.spawns.Load())
		}
		if out := c.out.String(); p.Flood > 0 && int64(len(out)) != p.Flood || p.Flood == 0 && out != p.Out || c.err.String() != p.Err {
			t.Errorf("attempt %d printed %d bytes, %.40q, and %.40q", i, len(out), out, c.err.String())
		}
	}
	a, c := h.attempt(t, Program{})
	if a.Spec = h.Spec(Program{NotFound: true}); a.Spec == nil {
		return
	}
	if _, err := row.Run(t.Context(), a, c.spawned); executor.AsStartError(err) == nil || c.spawns.Load() != 0 {
		t.Errorf("one that is not there: %v, %d starts", err, c.spawns.Load())
	}
	if r, c := h.next(t, t.Context(), row, Program{Out: "eight"}); r.ExitCode != 0 || c.out.String() != "eight" {
		t.Errorf("the one after it: %+v, %q", r, c.out.String())
	}
}

func (h Harness) batchClean(t *testing.T) {
	first, _ := h.attempt(t, Program{})
	row := h.beginBatch(t, first)
	for _, p := range []Program{{Out: "a", Child: true}, {Out: "b", Daemon: true}} {
		if h.Spec(p) == nil {
			continue
		}
		r, c := h.next(t, t.Context(), row, p)
		if r.ExitCode != 0 || c.out.String() != p.Out {
			t.Errorf("%+v: %+v, %q", p, r, c.out.String())
		}
		h.nothingLeft(t, first.ID)
		if r, c := h.next(t, t.Context(), row, Program{Out: "after"}); r.ExitCode != 0 || c.out.String() != "after" {
			t.Errorf("the one after %+v: %+v, %q", p, r, c.out.String())
		}
	}
}

func (h Harness) batchStop(t *testing.T) {
	first, _ := h.attempt(t, Program{})
	row := h.beginBatch(t, first)
	for _, p := range []Program{{Out: "ready", Sleep: true}, {Out: "ready", Sleep: true, IgnoreTerm: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		a, c := h.attempt(t, p)
		a.Grace = 200 * time.Millisecond
		a.Stdout = &trigger{buffer: &c.out, on: "ready", do: cancel}
		r, err := row.Run(ctx, a, c.spawned)
		if cancel(); err != nil || !r.Stopped {
			t.Fatalf("stopped: %+v, error %v", r, err)
		}
		h.nothingLeft(t, first.ID)
		if r, c := h.next(t, t.Context(), row, Program{Out: "after"}); r.ExitCode != 0 || r.Stopped || c.out.String() != "after" {
			t.Errorf("the one after it: %+v, %q", r, c.out.String())
		}
		if r, c := h.next(t, ctx, row, Program{Out: "never"}); !r.Stopped || c.spawns.Load() != 0 {
			t.Errorf("one whose context is done: %+v, %d starts", r, c.spawns.Load())
		}
	}
}

// batchLease checks that the lease of the batch applies, rather than that of an
// attempt.
func (h Harness) batchLease(t *testing.T) {
	WithLease(t, func(length time.Duration) error {
		first, _ := h.attempt(t, Program{})
		first.Lease = executor.NewLease(executor.Now(), length, length)
		a, c := h.attempt(t, Program{Out: "ready", IgnoreTerm: true, Sleep: true})
		defer renewWhile(first.Lease, c.isSilent)()
		row := h.beginBatch(t, first)
		a.Grace = time.Hour
		if r, _ := stopWhenReady(t, a, c, row.Run); !r.Stopped || r.Signal != "SIGKILL" || !first.Lease.Over() {
			return fmt.Errorf("%+v, want one stopped by SIGKILL at the end of the lease of the batch", r)
		}
		if r, c := h.next(t, t.Context(), row, Program{Out: "never"}); !r.Stopped || c.spawns.Load() != 0 {
			t.Errorf("the next one: %+v, %d starts", r, c.spawns.Load())
		}
		return nil
	})
}

func (h Harness) batchEmpty(t *testing.T) {
	first, _ := h.attempt(t, Program{})
	h.beginBatch(t, first)
}
