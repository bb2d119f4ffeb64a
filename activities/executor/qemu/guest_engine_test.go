//go:build linux && engines

package qemu

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
	"switchyard/activities/executor/qemu/disk"
	v1 "switchyard/proto/switchyard/v1"

	"switchyard/dev/guestimage"
	"switchyard/dev/testneeds"
)

// overlayTarget bounds the initial size of a machine's disk.
const overlayTarget = 10 << 20

// enter waits until a machine answers, and returns access to its inside.
func (r *run) enter(t *testing.T, e *Executor) executor.Inside {
	t.Helper()
	testneeds.Await(t, "the machine answers", func() bool {
		m := e.find(r.ID)
		return m == nil || m.login.hasAnswered()
	})
	in, err := e.Enter(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// prints runs a command line in a machine and returns its output.
func prints(t *testing.T, in executor.Inside, line string) string {
	t.Helper()
	var out bytes.Buffer
	status, err := in.Exec(t.Context(), executor.Command{Line: line, Stdout: &out, Stderr: &out})
	if err != nil || status.Code != 0 {
		t.Fatalf("%s: %+v, error %v, printed %q", line, status, err, out.String())
	}
	return out.String()
}

func TestLongMachineBootsAndIsEnteredAndStopped(t *testing.T) {
	testneeds.Long(t)
	image := guestimage.Build(t)
	e := newExecutor(t, newDir(t))
	r := newRun(t, image, map[string]any{"user": "ann", "vmDiskSize": "1G", "workingDirectory": "/data"})
	began := time.Now()
	r.start(t, e)
	if info, err := os.Stat(e.folderOf(r.ID).file(diskFile)); err != nil || info.Size() > overlayTarget {
		t.Errorf("the disk has %d bytes at the start, error %v", info.Size(), err)
	} else {
		t.Logf("the disk has %d bytes at the start", info.Size())
	}
	in := r.enter(t, e)
	t.Logf("the first login was possible after %v", time.Since(began).Round(100*time.Millisecond))
	if got := prints(t, in, `echo "$GREETING $(hostname) $(whoami) $(pwd)"; ip addr | grep -o 'inet 10[0-9.]*'`); got != "hello desk ann /data\ninet "+v1.GuestAddress+"\n" {
		t.Errorf("it prints %q", got)
	}
	r.prints(t, r.notes, "the machine answers on SSH after ", 1)
	r.stop(errors.New("time is up"))
	if got := r.wait(t); got != (executor.Result{Stopped: true}) {
		t.Errorf("result %+v", got)
	}
	if text := r.out.String(); !strings.Contains(text, "Linux version") && !strings.Contains(text, "desk is up") {
		t.Errorf("its console is not in the log: %q", text)
	}
}

func TestLongMachinePassesInsideConformance(t *testing.T) {
	testneeds.Long(t)
	e := newExecutor(t, newDir(t))
	r := newRun(t, guestimage.Build(t), nil)
	r.start(t, e)
	in := r.enter(t, e)
	executortest.RunInside(t, executortest.InsideHarness{
		Enter:       func(*testing.T) executor.Inside { return in },
		Dir:         func(*testing.T) string { return "/tmp" },
		Env:         [2]string{"GREETING", "hello"},
		LargeOutput: 1 << 20, NoHardLinks: true, OpensDevices: true,
	})
}

func TestLongMachineIsShutDownFromInside(t *testing.T) {
	testneeds.Long(t)
	e := newExecutor(t, newDir(t))
	r := newRun(t, guestimage.Build(t), nil)
	r.start(t, e)
	in := r.enter(t, e)
	// A machine that reboots keeps its attempt.
	prints(t, in, "echo kept >~/file; (sleep 5; reboot) >/dev/null 2>&1 &")
	r.prints(t, r.notes, "the machine restarts by itself", 1)
	r.prints(t, r.notes, "answers on SSH", 2)
	if got := prints(t, in, "cat ~/file"); got != "kept\n" {
		t.Errorf("after its reboot the file has %q", got)
	}
	prints(t, in, "(sleep 5; poweroff) >/dev/null 2>&1 &")
	if got := r.wait(t); got != (executor.Result{}) || !strings.Contains(r.notes.String(), "shut down from inside") {
		t.Errorf("result %+v, told %q", got, r.notes.String())
	}
}

func TestLongDeafMachineIsKilledAfterItsGracePeriod(t *testing.T) {
	testneeds.Long(t)
	e := newExecutor(t, newDir(t))
	r := newRun(t, guestimage.BuildDeaf(t), nil)
	r.Grace = 6 * time.Second // a machine that obeys needs 3 s
	r.start(t, e)
	r.enter(t, e)
	began := time.Now()
	r.stop(errors.New("time is up"))
	want := executor.Result{ExitCode: 137, Signal: "SIGKILL", Stopped: true}
	if got := r.wait(t); got != want || time.Since(began) < r.Grace {
		t.Errorf("result %+v after %v", got, time.Since(began))
	}
}

func TestLongSessionOutlastsAPause(t *testing.T) {
	testneeds.Long(t)
	e := newExecutor(t, newDir(t))
	r := newRun(t, guestimage.Build(t), nil)
	r.start(t, e)
	in := r.enter(t, e)
	var out testneeds.Output
	input, type_ := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		status, err := in.Exec(context.WithoutCancel(t.Context()), executor.Command{Line: "echo ready; cat", Stdin: input, Stdout: &out})
		if err == nil && status.Code != 0 {
			err = errors.New("its exit code is not 0")
		}
		ended <- err
	}()
	testneeds.Await(t, "the session is open", func() bool { return strings.Contains(out.String(), "ready") })
	if err := e.Pause(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // longer than a connection without keep-alives lasts
	if err := e.Resume(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(type_, "still here\n"); err != nil {
		t.Fatal(err)
	}
	testneeds.Await(t, "the session continues", func() bool { return strings.Contains(out.String(), "still here") })
	_ = type_.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestLongMachineKeepsItsFilesWhenItIsRestarted(t *testing.T) {
	testneeds.Long(t)
	e := newExecutor(t, newDir(t))
	e.bootPatience = patience
	r := newRun(t, guestimage.Build(t), nil)
	r.start(t, e)
	in := r.enter(t, e)
	prints(t, in, "echo kept >~/file")
	if err := e.Restart(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	// A command waits while the machine boots.
	if got := prints(t, in, "cat ~/file"); got != "kept\n" {
		t.Errorf("the file has %q", got)
	}
}

func TestLongMachineIsAdoptedByTheNextWorker(t *testing.T) {
	testneeds.Long(t)
	dir := newDir(t)
	e := newExecutor(t, dir)
	r := newRun(t, guestimage.Build(t), nil)
	r.start(t, e)
	in := r.enter(t, e)
	since := prints(t, in, "echo here >/tmp/file; grep btime /proc/stat")
	r.letGo(t)
	if _, err := in.Exec(t.Context(), executor.Command{Args: []string{"true"}}); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("a machine that was left is entered with error %v", err)
	}
	e = newExecutor(t, dir)
	r.checkSurvivor(t, e, true)
	r.reattach(t, e)
	testneeds.Await(t, "it is adopted", func() bool { return e.find(r.ID) != nil })
	if got := prints(t, r.enter(t, e), "cat /tmp/file; grep btime /proc/stat"); got != "here\n"+since {
		t.Errorf("it is another machine: %q", got)
	}
	r.kill(t, e, unix.SIGKILL)
	if got := r.wait(t); got != (executor.Result{ExitCode: 137, Signal: "SIGKILL"}) {
		t.Errorf("result %+v", got)
	}
}

func TestLongMachineIsCaptured(t *testing.T) {
	testneeds.Long(t)
	e := newExecutor(t, newDir(t))
	image := guestimage.Build(t)
	r := newRun(t, image, nil)
	r.start(t, e)
	in := r.enter(t, e)
	prints(t, in, "echo captured >~/file")
	path := filepath.Join(t.TempDir(), "captured.qcow2")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	began := time.Now()
	got, err := e.Capture(t.Context(), r.ID, file)
	if err != nil || got != (executor.Captured{Kind: v1.EnvironmentDisk}) {
		t.Fatalf("captured %+v, error %v", got, err)
	}
	info, err := disk.Inspect(t.Context(), path)
	t.Logf("captured in %v: %+v, error %v", time.Since(began), info, err)
	if got := prints(t, in, "echo alive"); got != "alive\n" {
		t.Errorf("it does not continue: %q", got)
	}
	if found, err := filepath.Glob(e.folderOf(r.ID).file(captureFile) + "*"); err != nil || len(found) > 0 {
		t.Errorf("the copy is left: %v", found)
	}
	second := newRun(t, path, nil)
	second.start(t, e)
	if got := prints(t, second.enter(t, e), "cat ~/file"); got != "captured\n" {
		t.Errorf("the machine of the captured disk has %q", got)
	}
	var whole bytes.Buffer
	if got, err := e.CaptureImage(t.Context(), image, "", &whole, func(string) {}); err != nil || got.Kind != v1.EnvironmentDisk {
		t.Errorf("captured %+v, error %v", got, err)
	}
	if base, err := os.ReadFile(image); err != nil || !bytes.Equal(base, whole.Bytes()) {
		t.Errorf("the captured image differs: %v", err)
	}
	_, err = e.CaptureImage(t.Context(), "/no/such.qcow2", "", io.Discard, func(string) {})
	if _, ok := errors.AsType[*executor.Refusal](err); !ok {
		t.Errorf("error %v", err)
	}
}
