package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
)

// leaving is a machine with a worker that leaves attempts to the next one.
type leaving struct {
	t         *testing.T
	mechanism Mechanism
	dir       string
	worker    *Executor
}

func newLeaving(t *testing.T, m Mechanism) *leaving {
	if !canLeaveHere(newWatchdog(true, nil)) {
		t.Skip("this kernel does not keep exit statuses")
	}
	l := &leaving{t: t, mechanism: m, dir: filepath.Join(t.TempDir(), strings.Repeat("long", 30))}
	l.restart()
	return l
}

// restart starts a worker. The earlier one, if any, has ended.
func (l *leaving) restart() {
	var err error
	l.worker, err = New(Options{Mechanism: l.mechanism, Watchdog: true, Leave: true, LeftDir: l.dir})
	if err != nil {
		l.t.Fatal(err)
	}
	worker := l.worker
	l.t.Cleanup(func() { _ = worker.Close() })
}

// leave starts attempts, leaves each when it has printed a line, and ends the worker.
func (l *leaving) leave(all ...executor.Attempt) {
	l.t.Helper()
	var running sync.WaitGroup
	for _, a := range all {
		running.Go(func() {
			ctx, leave := context.WithCancelCause(l.t.Context())
			out := a.Stdout
			a.Stdout = writerFunc(func(p []byte) (int, error) {
				leave(executor.ErrLetGo)
				return out.Write(p)
			})
			if r, err := l.worker.Run(ctx, a, func() {}); err != nil || !r.Stopped {
				l.t.Errorf("left with result %+v, error %v", r, err)
			}
		})
	}
	running.Wait()
	if err := l.worker.Close(); err != nil {
		l.t.Fatal(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// attempt returns an attempt of a command, and what it prints.
func (l *leaving) attempt(command string, lease *executor.Lease) (executor.Attempt, *strings.Builder) {
	var out strings.Builder
	id := fmt.Sprintf("%s/%s/c1", idPrefix, strings.ReplaceAll(l.t.Name(), "/", "-"))
	return executor.Attempt{
		ID: id, Identity: executor.Identity{Run: id, Node: "left"}, Spec: spec(l.t, map[string]any{"command": command}),
		Streams: executor.Streams{Stdout: &out, Held: func() ([]byte, error) { return []byte("held"), nil }},
		Env:     map[string]string{"SECRET": "s", "FLAG": filepath.Join(l.t.TempDir(), "flag")},
		Secrets: executor.Secrets{Env: map[string]string{"SECRET": "env:S"}},
		Ending:  executor.Ending{Grace: time.Minute, Lease: lease},
	}, &out
}

// next returns the only attempt that the worker finds.
func (l *leaving) next(running bool) executor.Leftover {
	l.t.Helper()
	left, err := l.worker.Survivors(l.t.Context(), "left")
	if err != nil || len(left) != 1 {
		l.t.Fatalf("left %+v, %v, want one", left, err)
	}
	k := left[0]
	if k.Running != running || string(k.Held) != "held" || k.Env["SECRET"] != "s" || time.Since(k.StartedAt) > time.Hour {
		l.t.Errorf("left %+v", k)
	}
	return k
}

func (l *leaving) wantNothing(a executor.Attempt) {
	l.t.Helper()
	if left, err := l.worker.Survivors(l.t.Context(), "left"); err != nil || len(left) > 0 {
		l.t.Errorf("left %+v, %v, want none", left, err)
	}
	if _, err := l.worker.Reattach(l.t.Context(), a); !errors.Is(err, executor.ErrNotRunning) {
		l.t.Errorf("reattached with error %v", err)
	}
	if left := leftOf(l.t, a.ID); len(left) > 0 {
		l.t.Errorf("left: %v", left)
	}
	if entries, _ := os.ReadDir(l.dir); len(entries) > 0 {
		l.t.Errorf("left: %v", entries)
	}
}

// unboundTrees are trees of a kind that no attempt has been left in.
type unboundTrees struct{ treeFactory }

func flag(t *testing.T, a executor.Attempt) {
	t.Helper()
	if err := os.WriteFile(a.Env["FLAG"], nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLeave(t *testing.T) { leave(t, portable) }

func leave(t *testing.T, m Mechanism) {
	const waits = `echo $$; until [ -e "$FLAG" ]; do sleep 0.05; done; `
	long := executor.NewLease(executor.Now(), time.Hour, 2*time.Hour)
	t.Run("continues under two more workers", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, out := l.attempt(`trap "" PIPE; for i in 1 2 3 4 5 6 7 8 9; do echo $$; sleep 0.1; done; sleep 1000 & exit 7`, long)
		l.leave(a)
		l.restart()
		l.next(true)
		ctx, again := context.WithCancelCause(t.Context())
		first := a
		first.Stdout = writerFunc(func(p []byte) (int, error) { again(executor.ErrLetGo); return out.Write(p) })
		if r, err := l.worker.Reattach(ctx, first); err != nil || !r.Stopped {
			t.Fatalf("left again with result %+v, error %v", r, err)
		}
		if err := l.worker.Close(); err != nil {
			t.Fatal(err)
		}
		l.restart()
		if r, err := l.worker.Reattach(t.Context(), a); err != nil || r.ExitCode != 7 || r.Stopped {
			t.Errorf("result %+v, error %v, want exit code 7", r, err)
		}
		lines := strings.Fields(out.String())
		if len(lines) != 9 || strings.Count(out.String(), lines[0]) != 9 {
			t.Errorf("printed %q, want the PID nine times", out)
		}
		l.wantNothing(a)
	})
	t.Run("ends meanwhile", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, out := l.attempt(waits+"echo done; kill -USR1 $$", long)
		l.leave(a)
		l.restart()
		flag(t, a)
		testneeds.Await(t, "it has ended", func() bool {
			left, err := l.worker.Survivors(t.Context(), "left")
			return err == nil && len(left) == 1 && !left[0].Running
		})
		if r, err := l.worker.Reattach(t.Context(), a); err != nil || r.Signal != "SIGUSR1" || r.Stopped || !strings.HasSuffix(out.String(), "\ndone\n") {
			t.Errorf("result %+v, error %v, printed %q", r, err, out)
		}
		l.wantNothing(a)
	})
	t.Run("paused and stopped", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, _ := l.attempt(`trap "exit 9" TERM; `+waits, long)
		l.leave(a)
		l.restart()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			defer stop()
			testneeds.Await(t, "it is paused", func() bool { return l.worker.Pause(t.Context(), a.ID) == nil })
		}()
		if r, err := l.worker.Reattach(ctx, a); err != nil || !r.Stopped || r.ExitCode != 9 {
			t.Errorf("result %+v, error %v, want one stopped with exit code 9", r, err)
		}
		l.wantNothing(a)
	})
	t.Run("removed", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, _ := l.attempt(`trap "" TERM; `+waits, long)
		l.leave(a)
		l.restart()
		if err := l.worker.Remove(t.Context(), l.next(true)); err != nil {
			t.Error(err)
		}
		l.wantNothing(a)
	})
	t.Run("its lease ends", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, _ := l.attempt(`trap "" TERM; `+waits, executor.NewLease(executor.Now(), time.Second, 3*time.Second))
		l.leave(a)
		testneeds.Await(t, "it is ended", func() bool { return len(leftOf(t, a.ID)) == 0 })
		if now := executor.Now(); now < a.Lease.StopAt() {
			t.Errorf("ended %v before its lease", a.Lease.StopAt().Sub(now))
		}
		l.restart()
		testneeds.Await(t, "it is forgotten", func() bool {
			left, err := l.worker.Survivors(t.Context(), "left")
			return err == nil && len(left) == 0
		})
		l.wantNothing(a)
	})
	t.Run("two end meanwhile", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		var all []executor.Attempt
		var outs []*strings.Builder
		for i := range 2 {
			a, out := l.attempt(fmt.Sprintf("%secho done; exit %d", waits, i), long)
			a.ID += fmt.Sprint(i)
			all, outs = append(all, a), append(outs, out)
		}
		l.leave(all...)
		l.restart()
		for _, a := range all {
			flag(t, a)
		}
		testneeds.Await(t, "both have ended", func() bool {
			left, err := l.worker.Survivors(t.Context(), "left")
			return err == nil && len(left) == 2 && !left[0].Running && !left[1].Running
		})
		for i, a := range all {
			if r, err := l.worker.Reattach(t.Context(), a); err != nil || r.ExitCode != i || r.Stopped || !strings.HasSuffix(outs[i].String(), "\ndone\n") {
				t.Errorf("result %+v, error %v, printed %q", r, err, outs[i])
			}
		}
		l.wantNothing(all[0])
		l.wantNothing(all[1])
	})
	t.Run("its worker comes too late", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, _ := l.attempt(`trap 'touch "$FLAG"; sleep 1000; exit 0' TERM; `+waits, executor.NewLease(executor.Now(), 100*time.Millisecond, 4100*time.Millisecond))
		l.leave(a)
		testneeds.Await(t, "it is asked to end", func() bool { _, err := os.Stat(a.Env["FLAG"]); return err == nil })
		a.Lease = long
		l.restart()
		if r, err := l.worker.Reattach(t.Context(), a); !errors.Is(err, executor.ErrNotRunning) {
			t.Errorf("continued with result %+v, error %v", r, err)
		}
		l.wantNothing(a)
	})
	t.Run("its watchdog is killed", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, _ := l.attempt(waits, long)
		ctx, leave := context.WithCancelCause(t.Context())
		a.Stdout = writerFunc(func(p []byte) (int, error) { leave(executor.ErrLetGo); return len(p), nil })
		if _, err := l.worker.Run(ctx, a, func() {}); err != nil {
			t.Fatal(err)
		}
		_ = l.worker.guard.process.Kill()
		<-l.worker.guard.exited
		if err := l.worker.Close(); err != nil {
			t.Error(err)
		}
		testneeds.Await(t, "it ends, too", func() bool { return len(leftOf(t, a.ID)) == 0 })
	})
	t.Run("its watchdog hangs", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, _ := l.attempt(waits, long)
		l.leave(a)
		if err := l.worker.guard.process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		l.restart()
		if left, err := l.worker.Survivors(t.Context(), "left"); err != nil || len(left) > 0 {
			t.Errorf("left %+v, %v, want none", left, err)
		}
		if err := endLeftover(t.Context(), a.ID); err != nil {
			t.Error(err)
		}
		l.wantNothing(a)
	})
	t.Run("the next worker cannot continue it", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, _ := l.attempt(waits, long)
		l.leave(a)
		l.restart()
		trees := l.worker.trees
		l.worker.trees = unboundTrees{trees}
		if r, err := l.worker.Reattach(t.Context(), a); err == nil || errors.Is(err, executor.ErrNotRunning) {
			t.Errorf("result %+v, error %v", r, err)
		}
		l.worker.trees = trees
		l.wantNothing(a)
	})
	t.Run("ends while it is handed over", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, out := l.attempt(waits+"echo done; exit 7", long)
		a.Held = func() ([]byte, error) {
			flag(t, a)
			pid, err := strconv.Atoi(strings.Fields(out.String())[0])
			testneeds.Await(t, "it has ended", func() bool { return gone(pid) })
			return []byte("held"), err
		}
		l.leave(a)
		l.restart()
		l.next(false)
		if r, err := l.worker.Reattach(t.Context(), a); err != nil || r.ExitCode != 7 || r.Stopped || !strings.HasSuffix(out.String(), "\ndone\n") {
			t.Errorf("result %+v, error %v, printed %q", r, err, out)
		}
		l.wantNothing(a)
	})
	t.Run("its environment is cleared", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, out := l.attempt(`echo $$; exec env -i /bin/sleep 1000`, executor.NewLease(executor.Now(), time.Second, 2*time.Second))
		l.leave(a)
		pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
		if err != nil {
			t.Fatal(err)
		}
		testneeds.Await(t, "it is ended", func() bool { return gone(pid) })
		l.restart()
		testneeds.Await(t, "it is forgotten", func() bool {
			left, err := l.worker.Survivors(t.Context(), "left")
			return err == nil && len(left) == 0
		})
		l.wantNothing(a)
	})
	t.Run("not without a cause", func(t *testing.T) {
		t.Parallel()
		l := newLeaving(t, m)
		a, out := l.attempt(waits, long)
		ctx, stop := context.WithCancel(t.Context())
		a.Stdout = writerFunc(func(p []byte) (int, error) { stop(); return out.Write(p) })
		if r, err := l.worker.Run(ctx, a, func() {}); err != nil || r.Signal != "SIGTERM" {
			t.Errorf("result %+v, error %v", r, err)
		}
		l.wantNothing(a)
	})
}
