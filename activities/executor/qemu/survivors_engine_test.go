//go:build linux && engines

package qemu

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/qemu/qmp"
	"switchyard/dev/testneeds"
)

// letGo makes the worker of a machine leave it running.
func (r *run) letGo(t *testing.T) {
	t.Helper()
	r.stop(executor.ErrLetGo)
	if got := r.wait(t); !got.Stopped {
		t.Errorf("result %+v of a machine that was left", got)
	}
	r.clear()
}

// reattach continues the machine on another worker.
func (r *run) reattach(t *testing.T, e *Executor) {
	t.Helper()
	r.begin(t, func(ctx context.Context, a executor.Attempt, _ func()) (executor.Result, error) {
		return e.Reattach(ctx, a)
	})
}

// checkSurvivor checks that the machine is the only survivor, and returns it.
func (r *run) checkSurvivor(t *testing.T, e *Executor, running bool) executor.Leftover {
	t.Helper()
	left, err := e.Survivors(t.Context(), r.Identity.Node)
	if err != nil || len(left) != 1 {
		t.Fatalf("survivors %+v, error %v", left, err)
	}
	l := left[0]
	if l.ID != r.ID || l.Identity != r.Identity || l.Running != running || l.StartedAt.IsZero() || !reflect.DeepEqual(l.Env, r.Env) {
		t.Errorf("it survives as %+v", l)
	}
	return l
}

func TestEndWithoutAWorkerIsReportedByTheNextOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// alone ends the machine while no worker is attached.
		alone  func(t *testing.T, r *run, e *Executor)
		want   executor.Result
		notice string
	}{
		"is told": {func(t *testing.T, r *run, e *Executor) { r.pressAlone(t, e) }, executor.Result{}, "the machine was shut down\n"},
		"killed":  {func(t *testing.T, r *run, e *Executor) { r.kill(t, e, unix.SIGKILL) }, executor.Result{ExitCode: 137, Signal: "SIGKILL"}, "killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, first, r := startTicking(t, ticksOn)
			if left, err := first.Survivors(t.Context(), r.Identity.Node); err != nil || len(left) > 0 {
				t.Errorf("its own worker lists it: %v, error %v", left, err)
			}
			r.letGo(t)
			e := newExecutor(t, dir)
			c.alone(t, r, e)
			testneeds.Await(t, "the machine ends", func() bool {
				_, ok := e.folderOf(r.ID).readNumber(exitFile)
				return ok
			})
			r.checkSurvivor(t, e, false)
			if left, err := e.Survivors(t.Context(), "another"); err != nil || len(left) > 0 {
				t.Errorf("another node has it: %v, error %v", left, err)
			}
			r.reattach(t, e)
			if got := r.wait(t); got != c.want {
				t.Errorf("result %+v, want %+v", got, c.want)
			}
			if !strings.HasPrefix(r.out.String(), "boots\ntick\n") || !strings.Contains(r.notes.String(), c.notice) {
				t.Errorf("printed %q, told %q", r.out.String(), r.notes.String())
			}
		})
	}
}

// connectAlone returns a connection to a machine that no worker follows.
func (r *run) connectAlone(t *testing.T, e *Executor) *qmp.Client {
	t.Helper()
	var client *qmp.Client
	testneeds.Await(t, "QEMU answers", func() (ok bool) {
		var err error
		client, err = newMonitor(e.folderOf(r.ID)).connect(t.Context())
		return err == nil
	})
	return client
}

// pressAlone presses the power button of a machine that no worker follows.
func (r *run) pressAlone(t *testing.T, e *Executor) {
	t.Helper()
	client := r.connectAlone(t, e)
	defer client.Close()
	if err := client.Execute(t.Context(), "system_powerdown", nil, nil); err != nil {
		t.Fatal(err)
	}
}

func TestPausedMachinesStayPausedWithoutTheirWorker(t *testing.T) {
	t.Parallel()
	dir, e, r := startTicking(t, ticksOn)
	if err := e.Pause(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	r.letGo(t)
	e = newExecutor(t, dir)
	r.reattach(t, e)
	testneeds.Await(t, "it is known as paused", func() bool { m := e.find(r.ID); return m != nil && m.isPaused() })
	r.awaitSilence(t)
	if err := e.Resume(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	r.awaitTicks(t)
}

func TestInterruptedRestartIsCompletedByTheNextWorker(t *testing.T) {
	t.Parallel()
	for name, isDown := range map[string]bool{"is shut down": true, "still shuts down": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, e, r := startTicking(t, ticksOn)
			if err := e.find(r.ID).monitor.setShutdownAction(t.Context(), "pause"); err != nil {
				t.Fatal(err)
			}
			r.letGo(t)
			if isDown {
				r.pressAlone(t, e)
				client := r.connectAlone(t, e)
				testneeds.Await(t, "it is shut down", func() bool {
					var answer struct{ Status string }
					err := client.Execute(t.Context(), "query-status", nil, &answer)
					return err == nil && answer.Status == stateShutdown
				})
				_ = client.Close()
			}
			e = newExecutor(t, dir)
			r.reattach(t, e)
			if !isDown {
				testneeds.Await(t, "it is adopted", func() bool { return e.find(r.ID) != nil })
				e.find(r.ID).pressOnce(t)
			}
			r.prints(t, r.out, "boots\n", 2)
		})
	}
}

func (m *machine) pressOnce(t *testing.T) {
	t.Helper()
	if err := m.monitor.execute(t.Context(), "system_powerdown", nil, nil); err != nil {
		t.Fatal(err)
	}
}

func TestHangingWorkerDoesNotBlockTheNextOne(t *testing.T) {
	t.Parallel()
	dir, hanging, r := startTicking(t, ticksOn)
	client := hanging.find(r.ID) // it holds the first socket
	next := newExecutor(t, dir)
	second := newRun(t, "", nil)
	second.ID, second.Identity = r.ID, r.Identity
	second.reattach(t, next)
	second.prints(t, second.out, "tick\n", 1)
	testneeds.Await(t, "it is steered by the second socket", func() bool { return next.Pause(t.Context(), r.ID) == nil })
	if state, err := client.monitor.state(t.Context()); err != nil || state != statePaused {
		t.Errorf("state %s, error %v", state, err)
	}
	second.stop(errors.New("time is up"))
	if got := second.wait(t); !got.Stopped {
		t.Errorf("result %+v", got)
	}
	<-r.ended
}

func TestUnwantedMachinesAreRemoved(t *testing.T) {
	t.Parallel()
	dir, e, r := startTicking(t, isDeaf)
	r.letGo(t)
	e = newExecutor(t, dir)
	l := r.checkSurvivor(t, e, true)
	began := time.Now()
	for range 2 {
		if err := e.Remove(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took >= killPatience {
		t.Errorf("the removal took %v, although QEMU obeys SIGKILL", took)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, error %v", left, err)
	}
	if _, err := e.Reattach(t.Context(), r.Attempt); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("adopted with error %v", err)
	}
}
