package executortest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// survivors checks attempts that outlive their worker.
func (h Harness) survivors(t *testing.T) {
	if h.Abandon == nil {
		t.Skip("attempts do not outlive their worker here")
	}
	exec := h.New(t)
	e := exec.Capabilities().Survive
	awaitAvailable(t, exec)
	t.Run("none", func(t *testing.T) {
		a, _ := h.attempt(t, Program{})
		if left, err := e.Survivors(t.Context(), a.ID); err != nil || len(left) > 0 {
			t.Errorf("survivors %+v, error %v", left, err)
		}
		if _, err := e.Reattach(t.Context(), a); !errors.Is(err, executor.ErrNotRunning) {
			t.Errorf("adopted with error %v, want ErrNotRunning", err)
		}
		h.must(t, e.Remove(t.Context(), executor.Leftover{ID: a.ID, Identity: a.Identity}))
	})
	t.Run("adopted while it runs", func(t *testing.T) {
		t.Parallel()
		a, c, goOn := h.abandoned(t, Program{Out: "first", Err: "to standard error", Code: 5})
		h.wantSurvivor(t, e, a, true)
		time.AfterFunc(100*time.Millisecond, goOn)
		r, err := e.Reattach(t.Context(), a)
		if err != nil || r.ExitCode != 5 || r.Stopped {
			t.Errorf("result %+v, error %v, want exit code 5", r, err)
		}
		if c.out.String() != "first" || c.err.String() != "to standard error" {
			t.Errorf("it has printed %q and %q: not all of it from the start", c.out.String(), c.err.String())
		}
		h.wantGone(t, e, a)
	})
	t.Run("adopted after its end", func(t *testing.T) {
		t.Parallel()
		a, c, goOn := h.abandoned(t, Program{Out: "first", Code: 5})
		goOn()
		h.awaitEnd(t, e, a)
		h.wantSurvivor(t, e, a, false)
		r, err := e.Reattach(t.Context(), a)
		if err != nil || r.ExitCode != 5 || r.Stopped || c.out.String() != "first" {
			t.Errorf("result %+v, error %v, output %q, want exit code 5", r, err, c.out.String())
		}
		h.wantGone(t, e, a)
	})
	t.Run("adopted and stopped", func(t *testing.T) {
		t.Parallel()
		a, c, _ := h.abandoned(t, Program{Out: "first\n"}) // an unfinished line may come late
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a.Stdout = &trigger{buffer: &c.out, on: "first", do: cancel}
		a.Signal = "SIGUSR1"
		if r, err := e.Reattach(ctx, a); err != nil || !r.Stopped || r.Signal != "SIGUSR1" {
			t.Errorf("result %+v, error %v, want one stopped by SIGUSR1", r, err)
		}
		h.wantGone(t, e, a)
	})
	t.Run("left and adopted", func(t *testing.T) {
		t.Parallel()
		a, c, resume := h.waiting(t, Program{Out: "first\n", Code: 5})
		h.removeAfterTest(t, a)
		ctx, leave := context.WithCancelCause(t.Context())
		defer leave(nil)
		first := a
		first.Stdout = &trigger{buffer: &buffer{}, on: "first", do: func() { leave(executor.ErrLetGo) }}
		if r, err := exec.Run(ctx, first, func() {}); err != nil || !r.Stopped {
			t.Fatalf("left with result %+v, error %v, want Stopped", r, err)
		}
		h.wantSurvivor(t, e, a, true)
		resume()
		if r, err := e.Reattach(t.Context(), a); err != nil || r.ExitCode != 5 || r.Stopped || c.out.String() != "first\n" {
			t.Errorf("result %+v, error %v, output %q, want exit code 5 and all output from the start", r, err, c.out.String())
		}
		h.wantGone(t, e, a)
	})
	t.Run("removed", func(t *testing.T) {
		t.Parallel()
		a, _, _ := h.abandoned(t, Program{Out: "first", IgnoreTerm: true})
		left := h.wantSurvivor(t, e, a, true)
		h.must(t, e.Remove(t.Context(), left))
		h.wantGone(t, e, a)
		h.must(t, e.Remove(t.Context(), left))
	})
}

// awaitAvailable waits until an executor can be used, if it reports that.
func awaitAvailable(t *testing.T, e executor.Executor) {
	t.Helper()
	available := e.Capabilities().Available
	if available == nil {
		return
	}
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := available()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("it is not available: %v", err)
		}
	}
}

// abandoned returns an attempt whose worker is dead. The attempt continues once goOn is
// called.
func (h Harness) abandoned(t *testing.T, p Program) (a executor.Attempt, c *capture, goOn func()) {
	t.Helper()
	a, c, goOn = h.waiting(t, p)
	h.Abandon(t, a, p.Out)
	h.removeAfterTest(t, a)
	return a, c, goOn
}

// waiting returns an attempt that waits, after its output, until goOn is called.
func (h Harness) waiting(t *testing.T, p Program) (a executor.Attempt, c *capture, goOn func()) {
	t.Helper()
	workspace := t.TempDir()
	h.must(t, os.Mkdir(filepath.Join(workspace, "tmp"), 0o700))
	p.AwaitFlag = true
	a, c = h.attempt(t, p)
	a.Identity.Node = a.Identity.Run
	a.Dirs.Workspace, a.Env["SUITE_FLAG"] = workspace, filepath.Join(workspace, "flag")
	return a, c, func() {
		if err := os.WriteFile(filepath.Join(workspace, "flag"), nil, 0o666); err != nil {
			t.Error(err)
		}
	}
}

// removeAfterTest removes what a failed test has left of an attempt.
func (h Harness) removeAfterTest(t *testing.T, a executor.Attempt) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		e := h.New(t)
		awaitAvailable(t, e)
		_ = e.Capabilities().Survive.Remove(ctx, executor.Leftover{ID: a.ID, Identity: a.Identity})
	})
}

// wantSurvivor returns the Leftover of an attempt and fails the test unless the executor
// lists it.
func (h Harness) wantSurvivor(t *testing.T, e executor.Survivor, a executor.Attempt, running bool) executor.Leftover {
	t.Helper()
	left, err := e.Survivors(t.Context(), a.Identity.Node)
	if err != nil || len(left) != 1 {
		t.Fatalf("survivors %+v, error %v, want one", left, err)
	}
	l := left[0]
	if l.ID != a.ID || l.Identity != a.Identity || l.Running != running {
		t.Errorf("it survives as %+v, want %s, %+v, running %v", l, a.ID, a.Identity, running)
	}
	if since := time.Since(l.StartedAt); since < 0 || since > time.Hour {
		t.Errorf("it has started at %v", l.StartedAt)
	}
	return l
}

// awaitEnd waits for the end of an attempt that was not reattached.
func (h Harness) awaitEnd(t *testing.T, e executor.Survivor, a executor.Attempt) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left, err := e.Survivors(t.Context(), a.Identity.Node)
		if err != nil || time.Now().After(until) {
			t.Fatalf("it does not end: %+v, %v", left, err)
		}
		if len(left) == 1 && !left[0].Running {
			return
		}
	}
}

func (h Harness) wantGone(t *testing.T, e executor.Survivor, a executor.Attempt) {
	t.Helper()
	h.nothingLeft(t, a.ID)
	if left, err := e.Survivors(t.Context(), a.Identity.Node); err != nil || len(left) > 0 {
		t.Errorf("survivors %+v, error %v, want none", left, err)
	}
}
