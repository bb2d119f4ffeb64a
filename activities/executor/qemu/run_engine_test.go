//go:build linux && engines

package qemu

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
)

// kill signals QEMU as an operator on the node would.
func (r *run) kill(t *testing.T, e *Executor, signal unix.Signal) {
	t.Helper()
	pid, ok := e.folderOf(r.ID).readNumber(pidFile)
	if !ok || !e.folderOf(r.ID).isRunning() {
		t.Fatal("QEMU does not run")
	}
	if err := unix.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

func TestEndsOfMachinesAreReported(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	e := newExecutor(t, dir)
	for name, c := range map[string]struct {
		ticks  uint16
		action byte
		do     func(t *testing.T, r *run)
		want   executor.Result
		notice string
	}{
		"power-off": {ticks: 2, action: powersOff, notice: "the machine was shut down"}, // perhaps before the node is connected
		"shut down from inside": {
			do: func(t *testing.T, r *run) { e.find(r.ID).pressOnce(t) }, notice: "was shut down from inside",
		},
		"killed": {
			do:   func(t *testing.T, r *run) { r.kill(t, e, unix.SIGKILL) },
			want: executor.Result{ExitCode: 137, Signal: "SIGKILL"}, notice: "QEMU was killed on the node by SIGKILL",
		},
		"asked to end on the node": {
			do: func(t *testing.T, r *run) {
				if _, err := e.find(r.ID).monitor.state(t.Context()); err != nil { // which waits until the node is connected
					t.Error(err)
				}
				r.kill(t, e, unix.SIGTERM)
			},
			want: executor.Result{ExitCode: 143, Signal: "SIGTERM"}, notice: "was asked to quit on the node",
		},
		"stopped": {
			do:   func(_ *testing.T, r *run) { r.stop(errors.New("time is up")) },
			want: executor.Result{Stopped: true},
		},
		"stopped while it is paused": {
			do: func(t *testing.T, r *run) {
				if err := e.Pause(t.Context(), r.ID); err != nil {
					t.Error(err)
				}
				r.stop(errors.New("time is up"))
			},
			want: executor.Result{Stopped: true},
		},
		"ignores the power button": {
			action: isDeaf,
			do:     func(_ *testing.T, r *run) { r.stop(errors.New("time is up")) },
			want:   executor.Result{ExitCode: 137, Signal: "SIGKILL", Stopped: true}, notice: "did not shut down within its grace period; killing it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, newImage(t, c.ticks, c.action), nil)
			if c.action == isDeaf {
				r.Grace = time.Second
			}
			r.start(t, e)
			r.prints(t, r.out, "tick\n", 1)
			if c.do != nil {
				c.do(t, r)
			}
			if got := r.wait(t); got != c.want {
				t.Errorf("result %+v, want %+v", got, c.want)
			}
			if !strings.HasPrefix(r.out.String(), "boots\ntick\n") || !strings.Contains(r.notes.String(), c.notice) {
				t.Errorf("it has printed %q, and %q is told of it", r.out.String(), r.notes.String())
			}
			if c.want.ExitCode == 0 && c.ticks == 0 && !strings.HasSuffix(r.out.String(), "bye\n") {
				t.Errorf("its last words are not in the log: %q", r.out.String())
			}
			if _, err := os.Stat(string(e.folderOf(r.ID))); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its folder is left: %v", err)
			}
			for what, do := range map[string]func() error{
				"pause":   func() error { return e.Pause(t.Context(), r.ID) },
				"resume":  func() error { return e.Resume(t.Context(), r.ID) },
				"restart": func() error { return e.Restart(t.Context(), r.ID) },
				"enter":   func() error { _, err := e.Enter(t.Context(), r.ID); return err },
				"capture": func() error { _, err := e.Capture(t.Context(), r.ID, nil); return err },
			} {
				if err := do(); !errors.Is(err, executor.ErrNotRunning) {
					t.Errorf("%s after its end: %v", what, err)
				}
			}
		})
	}
}

func TestMachinesThatCannotStartLeaveNothing(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	e := newExecutor(t, dir)
	text := filepath.Join(t.TempDir(), "text.raw")
	if err := os.WriteFile(text, []byte("no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	image := newImage(t, 0, ticksOn)
	for name, c := range map[string]struct {
		image  string
		fields map[string]any
		change func(r *run)
		isTask bool
		want   string
	}{
		"no image":          {image: "/no/such/image.qcow2", isTask: true, want: "no such file"},
		"text":              {image: text, isTask: true, want: "not a disk image"},
		"small disk":        {image: image, fields: map[string]any{"vmDiskSize": "4K"}, isTask: true, want: "is smaller than image"},
		"size":              {image: image, fields: map[string]any{"vmDiskSize": "much"}, isTask: true, want: "vmDiskSize: "},
		"user":              {image: image, fields: map[string]any{"user": "a b"}, isTask: true, want: "user"},
		"not enough memory": {image: image, change: func(r *run) { r.Limits.Memory = 1 << 50 }, want: "MB of memory available"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, c.image, c.fields)
			if c.change != nil {
				c.change(r)
			}
			r.begin(t, e.Run)
			<-r.ended
			if r.err == nil || !strings.Contains(r.err.Error(), c.want) || (executor.AsStartError(r.err) != nil) != c.isTask {
				t.Errorf("error %v, want %q, a fault of the task: %v", r.err, c.want, c.isTask)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, error %v", left, err)
			}
		})
	}
	t.Run("over before", func(t *testing.T) {
		r := newRun(t, image, nil)
		r.Lease = executor.NewLease(executor.Now().Add(-time.Hour), time.Second, 2*time.Second)
		r.begin(t, e.Run)
		if got := r.wait(t); !got.Stopped || r.spawned.Load() > 0 {
			t.Errorf("result %+v", got)
		}
	})
	t.Run("QEMU fails", func(t *testing.T) {
		broken := newExecutor(t, dir)
		broken.opts.Program.CPU = "no-such-model"
		r := newRun(t, image, nil)
		r.begin(t, broken.Run)
		<-r.ended
		if r.err == nil || !strings.Contains(r.err.Error(), "exited with 1: ") || !strings.Contains(r.err.Error(), "no-such-model") {
			t.Errorf("error %v", r.err)
		}
	})
}
