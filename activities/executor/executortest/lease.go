package executortest

import (
	"context"
	"errors"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// leaseTime is the length of the leases that a test lets expire. It is longer than a busy
// machine delays a renewal.
const leaseTime = 20 * time.Second

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
		a, c := h.attempt(t, Program{Out: "ready", IgnoreTerm: true, Sleep: true, Child: true, Daemon: true})
		a.Grace = time.Hour
		a.Lease = executor.NewLease(executor.Now(), leaseTime, leaseTime)
		defer renewWhile(a.Lease, c.isSilent)()
		r, _ := h.cancelled(t, e, a, c, "ready")
		if !r.Stopped || r.Signal != "SIGKILL" {
			t.Errorf("result %+v, want one stopped by SIGKILL", r)
		}
		if over := executor.Now().Sub(a.Lease.KillAt()); over < 0 {
			t.Errorf("it was ended %v before the end of its lease", -over)
		}
	})
	t.Run("renewed in the grace period", func(t *testing.T) {
		t.Parallel()
		a, c := h.attempt(t, Program{Out: "ready", IgnoreTerm: true, Sleep: true})
		a.Grace = leaseTime + time.Second
		a.Lease = executor.NewLease(executor.Now(), leaseTime, leaseTime)
		defer renewWhile(a.Lease, func() bool { return true })()
		if r, took := h.cancelled(t, e, a, c, "ready"); !r.Stopped || took < a.Grace {
			t.Errorf("result %+v after %v, want a stopped one after the grace period", r, took)
		}
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
