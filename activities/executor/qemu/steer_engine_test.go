//go:build linux && engines

package qemu

import (
	"errors"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
)

// awaitSilence waits until nothing has been printed for half a second, in which a machine ticks twice.
func (r *run) awaitSilence(t *testing.T) {
	t.Helper()
	had, since := r.out.String(), time.Now()
	testneeds.Await(t, "the machine stands still", func() bool {
		if now := r.out.String(); now != had {
			had, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}

// countTicks returns how often a machine has ticked.
func countTicks(printed string) int { return strings.Count(printed, "tick\n") }

// awaitTicks waits until the machine has ticked two more times.
func (r *run) awaitTicks(t *testing.T) {
	t.Helper()
	r.prints(t, r.out, "tick\n", countTicks(r.out.String())+2)
}

func TestMachinesArePausedAndResumed(t *testing.T) {
	t.Parallel()
	_, e, r := startTicking(t, ticksOn)
	for range 2 {
		r.awaitTicks(t)
		for range 2 {
			if err := e.Pause(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
		}
		r.awaitSilence(t)
		in, err := e.Enter(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = in.Exec(t.Context(), executor.Command{Args: []string{"true"}})
		if refusal, ok := errors.AsType[*executor.Refusal](err); !ok || !strings.Contains(refusal.Text, "the machine is paused") {
			t.Errorf("a paused machine is entered with error %v", err)
		}
		for range 2 {
			if err := e.Resume(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.awaitTicks(t)
	e.bootPatience = 0
	in, err := e.Enter(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = in.Exec(t.Context(), executor.Command{Args: []string{"true"}})
	if refusal, ok := errors.AsType[*executor.Refusal](err); !ok || !strings.Contains(refusal.Text, "the machine is booting") {
		t.Errorf("a machine that has no SSH server is entered with error %v", err)
	}
}

func TestMachinesAreRestarted(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]byte{"obeys": ticksOn, "ignores the power button": isDeaf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExecutor(t, newDir(t))
			r := newRun(t, newImage(t, 0, action), nil)
			if action == isDeaf {
				r.Grace = time.Second
			}
			r.start(t, e)
			r.awaitTicks(t)
			if err := e.Restart(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
			r.prints(t, r.out, "boots\n", 2)
			r.awaitTicks(t)
			if err := e.Pause(t.Context(), r.ID); err != nil { // a restart resumes the machine first
				t.Fatal(err)
			}
			m := e.find(r.ID)
			m.steering.Lock() // the restart waits for the second request
			first, err := m.beginRestart()
			second, secondErr := m.beginRestart()
			m.steering.Unlock()
			if err := errors.Join(err, secondErr); err != nil || first != second {
				t.Fatalf("two requests begin two restarts, error %v", err)
			}
			if err := first.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.prints(t, r.out, "boots\n", 3)
			r.awaitTicks(t)
			if got := strings.Count(r.out.String(), "boots\n"); got != 3 {
				t.Errorf("it has booted %d times", got)
			}
			if got := strings.Count(r.out.String(), "bye\n"); action == ticksOn && got != 2 {
				t.Errorf("it was shut down %d times", got)
			}
			// A power-off ends QEMU again.
			r.stop(errors.New("time is up"))
			if got := r.wait(t); !got.Stopped || (got.ExitCode == 0) != (action == ticksOn) {
				t.Errorf("result %+v", got)
			}
		})
	}
}

func TestMachinesRestartByThemselves(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, newDir(t))
	r := newRun(t, newImage(t, 2, restarts), nil)
	r.start(t, e)
	r.prints(t, r.out, "boots\n", 3)
	r.prints(t, r.notes, "the machine restarts by itself\n", 1)
}
