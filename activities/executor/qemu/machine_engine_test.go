//go:build linux && engines

package qemu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/qemu/disk"
	"switchyard/dev/testneeds"
)

// newDir returns a folder for machines with a short path.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vm-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := folders(dir); err != nil || len(left) > 0 {
			t.Errorf("machines are left: %v, error %v", left, err)
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

// newExecutor returns the executor of a worker.
func newExecutor(t *testing.T, dir string) *Executor {
	t.Helper()
	images, err := disk.NewImages(disk.Options{CacheDir: t.TempDir(), Directories: []string{"/"}})
	if err != nil {
		t.Fatal(err)
	}
	program, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Dir: dir, Images: images, Program: program, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// prints waits until a text has been printed at least n times. It fails if the machine ends before.
func (r *run) prints(t *testing.T, o *testneeds.Output, text string, n int) {
	t.Helper()
	has := func() bool { return strings.Count(o.String(), text) >= n }
	testneeds.Await(t, fmt.Sprintf("%q is printed %d times", text, n), func() bool { return has() || r.hasEnded() })
	if !has() {
		t.Fatalf("the machine has ended: %+v, error %v", r.result, r.err)
	}
}

// run is an attempt in progress.
type run struct {
	executor.Attempt
	out, notes *testneeds.Output
	spawned    atomic.Int32
	stop       context.CancelCauseFunc
	ended      chan struct{}
	result     executor.Result
	err        error
}

var serial atomic.Int64

// specOf returns the spec of a machine with an image.
func specOf(image string) map[string]any { return map[string]any{"backend": "qemu", "vmImage": image} }

// attemptOf returns an attempt of a run.
func attemptOf(run string, spec map[string]any) executor.Attempt {
	s, err := structpb.NewStruct(spec)
	if err != nil {
		panic(err)
	}
	return executor.Attempt{
		ID: run + "/desk/c1", Identity: executor.Identity{Run: run, Task: "desk", Node: "n1", Index: -1, Claim: 1},
		Spec: s, Env: map[string]string{"GREETING": "hello"}, Limits: executor.Limits{Memory: 256 << 20}, Ending: executor.Ending{Grace: patience},
	}
}

// newRun returns an attempt with a machine of an image.
func newRun(t *testing.T, image string, fields map[string]any) *run {
	t.Helper()
	spec := specOf(image)
	maps.Copy(spec, fields)
	r := &run{ended: make(chan struct{}), notes: &testneeds.Output{}}
	r.Attempt = attemptOf(fmt.Sprintf("run-%d-%d", os.Getpid(), serial.Add(1)), spec)
	r.Notify = func(line string) { fmt.Fprintln(r.notes, line) }
	r.clear()
	return r
}

// clear drops the output so far, as the log of a later worker starts empty.
func (r *run) clear() {
	r.out = &testneeds.Output{}
	r.Stdout = r.out
}

// begin runs an attempt in the background. The cleanup of the test ends it.
func (r *run) begin(t *testing.T, do func(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error)) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	r.stop = cancel
	r.ended = make(chan struct{})
	ended := r.ended
	go func() {
		defer close(ended)
		r.result, r.err = do(ctx, r.Attempt, func() { r.spawned.Add(1) })
	}()
	t.Cleanup(func() {
		cancel(errors.New("the test ends"))
		<-ended
		if t.Failed() {
			t.Logf("result %+v, error %v\nnotes: %s\nconsole: %s", r.result, r.err, r.notes.String(), r.out.String())
		}
	})
}

// start starts the machine of an attempt and waits until it runs. A brief machine may have ended by then.
func (r *run) start(t *testing.T, e *Executor) {
	t.Helper()
	r.begin(t, e.Run)
	testneeds.Await(t, "the machine starts", func() bool { return r.spawned.Load() > 0 || r.hasEnded() })
	if r.spawned.Load() == 0 {
		t.Fatalf("it has not started: %+v, error %v", r.result, r.err)
	}
}

// startTicking starts a machine whose disk does what action says, and waits until it ticks. It returns the folder of machines
// and the executor of their first worker, too.
func startTicking(t *testing.T, action byte) (dir string, e *Executor, r *run) {
	t.Helper()
	dir = newDir(t)
	e, r = newExecutor(t, dir), newRun(t, newImage(t, 0, action), nil)
	r.start(t, e)
	r.prints(t, r.out, "tick\n", 1)
	return dir, e, r
}

func (r *run) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// wait waits for the end of the attempt, which must not be an error, and returns the result.
func (r *run) wait(t *testing.T) executor.Result {
	t.Helper()
	testneeds.Await(t, "the machine ends", r.hasEnded)
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.result
}
