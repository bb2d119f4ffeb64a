package executortest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// WithLease checks attempts whose leases end, with leases of growing length until check returns nil: a busy machine may delay
// the renewals of a short one.
func WithLease(t *testing.T, check func(length time.Duration) error) {
	t.Helper()
	const first, last = 500 * time.Millisecond, time.Minute
	for length := first; ; length *= 2 {
		err := check(length)
		if err == nil {
			return
		}
		if length > last {
			t.Errorf("with a lease of %v: %v", length, err)
			return
		}
	}
}

// renewWhile renews a lease while a condition holds, until stop is called.
func renewWhile(l *executor.Lease, holds func() bool) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for holds() {
			select {
			case <-over:
				return
			case <-tick.C:
				l.Renew(executor.Now())
			}
		}
	}()
	return func() { close(over); <-ended }
}

// isSilent reports whether nothing has been printed to standard output.
func (c *capture) isSilent() bool { return c.out.String() == "" }

func (h Harness) lease(t *testing.T) {
	e := h.New(t)
	t.Run("lost before the start", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "never"})
		a.Lease = executor.NewLease(executor.Now().Add(-time.Second), time.Second, time.Hour)
		r, err := e.Run(t.Context(), a, c.spawned)
		if err != nil || !r.Stopped {
			t.Errorf("result %+v, error %v, want a stopped one", r, err)
		}
		if c.spawns.Load() != 0 || c.out.String() != "" {
			t.Error("it has started nevertheless")
		}
		h.nothingLeft(t, a.ID)
	})
	t.Run("of no concern", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "done", Code: 3})
		a.Lease = executor.NewLease(executor.Now(), time.Hour, 2*time.Hour)
		if r := h.finish(t, t.Context(), e, a, c); r.Stopped || r.ExitCode != 3 {
			t.Errorf("result %+v, want the program's own", r)
		}
	})
	t.Run("ends the grace period", func(t *testing.T) {
		t.Parallel()
		WithLease(t, func(length time.Duration) error {
			a, c := h.attempt(t, Program{Out: "ready", IgnoreTerm: true, Sleep: true, Child: true, Daemon: true})
			a.Grace = time.Hour
			a.Lease = executor.NewLease(executor.Now(), length, length)
			defer renewWhile(a.Lease, c.isSilent)()
			r, _ := stopWhenReady(t, a, c, e.Run)
			h.nothingLeft(t, a.ID)
			if !r.Stopped || r.Signal != "SIGKILL" || !a.Lease.Over() {
				return fmt.Errorf("result %+v, want one stopped by SIGKILL at the end of its lease", r)
			}
			return nil
		})
	})
	t.Run("renewed in the grace period", func(t *testing.T) {
		t.Parallel()
		WithLease(t, func(length time.Duration) error {
			a, c := h.attempt(t, Program{Out: "ready", IgnoreTerm: true, Sleep: true})
			a.Grace = length * 3 / 2
			a.Lease = executor.NewLease(executor.Now(), length, length)
			defer renewWhile(a.Lease, func() bool { return true })()
			r, took := stopWhenReady(t, a, c, e.Run)
			if !r.Stopped || r.Signal != "SIGKILL" || took < a.Grace {
				return fmt.Errorf("result %+v after %v, want a stopped one after the grace period", r, took)
			}
			return nil
		})
	})
	t.Run("stopped for any cause", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "ready", Sleep: true})
		ctx, cancel := context.WithCancelCause(t.Context())
		a.Stdout = &trigger{buffer: &c.out, on: "ready", do: func() { cancel(errors.New("the lease is lost")) }}
		if r := h.finish(t, ctx, e, a, c); !r.Stopped || r.Signal != "SIGTERM" {
			t.Errorf("result %+v, want one stopped by SIGTERM", r)
		}
	})
}
