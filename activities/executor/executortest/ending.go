package executortest

import (
	"context"
	"testing"
	"time"
)

func (h Harness) stop(t *testing.T) {
	e := h.New(t)
	t.Run("before the start", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "never"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := e.Run(ctx, a, c.spawned)
		if err != nil || !r.Stopped {
			t.Errorf("result %+v, error %v, want a stopped one", r, err)
		}
		if c.spawns.Load() != 0 || c.out.String() != "" {
			t.Error("it has started nevertheless")
		}
	})
	t.Run("by SIGTERM", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "ready", Sleep: true})
		r, took := h.cancelled(t, e, a, c)
		if !r.Stopped || r.ExitCode != 143 || r.Signal != "SIGTERM" {
			t.Errorf("result %+v, want one stopped by SIGTERM", r)
		}
		if took > a.Grace {
			t.Errorf("took %v, though nothing resisted", took)
		}
	})
	t.Run("cleaning up", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "ready", OnTerm: "bye", Sleep: true, Code: 7})
		r, took := h.cancelled(t, e, a, c)
		if !r.Stopped || r.ExitCode != 7 || r.Signal != "" {
			t.Errorf("result %+v, want a stopped one with the program's own exit code 7", r)
		}
		if got := c.out.String(); got != "readybye" {
			t.Errorf("printed %q, want what it prints on SIGTERM, too", got)
		}
		if took > a.Grace {
			t.Errorf("took %v, though nothing resisted", took)
		}
	})
	t.Run("by a signal of its own", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "ready", IgnoreTerm: true, Sleep: true})
		a.Signal = "SIGUSR1"
		r, took := h.cancelled(t, e, a, c)
		if !r.Stopped || r.ExitCode != 138 || r.Signal != "SIGUSR1" {
			t.Errorf("result %+v, want one stopped by SIGUSR1", r)
		}
		if took > a.Grace {
			t.Errorf("took %v, though nothing resisted", took)
		}
	})
	t.Run("by SIGKILL after the grace period", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "ready", IgnoreTerm: true, Sleep: true})
		a.Grace = 300 * time.Millisecond
		r, took := h.cancelled(t, e, a, c)
		if !r.Stopped || r.ExitCode != 137 || r.Signal != "SIGKILL" || r.OOMKilled {
			t.Errorf("result %+v, want one stopped by SIGKILL", r)
		}
		if took < a.Grace {
			t.Errorf("took %v, less than the grace period of %v", took, a.Grace)
		}
	})
	t.Run("by SIGKILL when the grace period ends early", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "ready", IgnoreTerm: true, Sleep: true})
		ended := make(chan struct{})
		close(ended)
		a.Grace, a.EndGrace = time.Hour, ended
		if r, _ := h.cancelled(t, e, a, c); !r.Stopped || r.ExitCode != 137 || r.Signal != "SIGKILL" || r.OOMKilled {
			t.Errorf("result %+v, want one stopped by SIGKILL", r)
		}
	})
	t.Run("by deadline", func(t *testing.T) {
		for limit := 200 * time.Millisecond; ; limit *= 2 {
			a, c := h.attempt(t, Program{Sleep: true})
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			r, err := e.Run(ctx, a, c.spawned)
			cancel()
			if err != nil || !r.Stopped {
				t.Errorf("result %+v, error %v, want a stopped one", r, err)
			}
			h.nothingLeft(t, a.ID)
			if c.spawns.Load() == 1 || limit > patience { // otherwise the deadline came before the start
				return
			}
		}
	})
	t.Run("after the end", func(t *testing.T) {
		a, c := h.attempt(t, Program{Out: "done"})
		ctx, cancel := context.WithCancel(t.Context())
		r := h.finish(t, ctx, e, a, c)
		cancel()
		if r.Stopped {
			t.Errorf("result %+v, want one that has ended by itself", r)
		}
	})
}

func (h Harness) nothingSurvives(t *testing.T) {
	e := h.New(t)
	left := map[string]Program{
		"child":            {Child: true},
		"daemon":           {Daemon: true},
		"child and daemon": {Child: true, Daemon: true},
		"deaf to SIGTERM":  {Child: true, Daemon: true, IgnoreTerm: true},
	}
	tests := map[string]func(*testing.T){}
	for name, p := range left {
		p.Out, p.Code = "ready", 4
		stopped, killed := p, p
		stopped.Sleep, killed.Kill = true, "KILL"
		tests[name+", program exits"] = func(t *testing.T) {
			a, c := h.attempt(t, p)
			start := time.Now()
			r := h.finish(t, t.Context(), e, a, c)
			if r.ExitCode != 4 || r.Stopped {
				t.Errorf("result %+v, want exit code 4", r)
			}
			if took := time.Since(start); took > grace {
				t.Errorf("took %v to end what was left", took)
			}
			if got := c.out.String(); got != "ready" {
				t.Errorf("printed %q", got)
			}
		}
		tests[name+", program is stopped"] = func(t *testing.T) {
			a, c := h.attempt(t, stopped)
			a.Grace = 300 * time.Millisecond
			if r, _ := h.cancelled(t, e, a, c); !r.Stopped {
				t.Errorf("result %+v, want a stopped one", r)
			}
		}
		tests[name+", program is killed"] = func(t *testing.T) {
			a, c := h.attempt(t, killed)
			if r := h.finish(t, t.Context(), e, a, c); r.Signal != "SIGKILL" || r.Stopped {
				t.Errorf("result %+v, want one ended by SIGKILL", r)
			}
		}
	}
	atOnce(t, tests)
}
