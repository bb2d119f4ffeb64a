//go:build engines

package vps_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/activities/executor/inside"
	"switchyard/activities/executor/vps"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) {
	inside.ServeIfAsked()
	workIfAsked()
	testneeds.Parallel(8)
	testneeds.NoLeaks(m)
}

// newExecutor returns executors of machines and of containers that share an engine.
func newExecutor(t testing.TB, o containers.Options) (*vps.Executor, *containers.Executor) {
	t.Helper()
	c, err := containers.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return vps.New(c, nil), c
}

// attempt returns an attempt of a machine with the given spec fields, and the output of the machine.
func attempt(t testing.TB, fields map[string]any) (a executor.Attempt, out *testneeds.Output) {
	t.Helper()
	a, out, _ = enginetest.Attempt(t, "box", fields)
	a.Stderr, a.Grace, a.Env = out, 2*time.Minute, map[string]string{"GREETING": "hello"}
	return a, out
}

// script returns the spec of a machine whose init process is a shell that runs a script.
func script(text string) map[string]any {
	return map[string]any{"init": []any{"sh", "-c", text}}
}

// machine is a running attempt.
type machine struct {
	a     executor.Attempt
	out   *testneeds.Output
	name  string
	ended chan enginetest.Outcome
	stop  context.CancelCauseFunc
}

// start starts an attempt, which runs until the end of the test.
func start(t testing.TB, e *vps.Executor, a executor.Attempt, out *testneeds.Output) *machine {
	t.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	m := &machine{a: a, out: out, name: "switchyard-vps-" + a.Identity.Run + "-box-0-c1", stop: stop}
	m.stopAfter(t)
	m.ended = enginetest.Begin(t, ctx, e, a)
	return m
}

// reattach continues an attempt that was let go.
func reattach(t testing.TB, e *vps.Executor, a executor.Attempt) *machine {
	t.Helper()
	out := &testneeds.Output{}
	a.Stdout, a.Stderr = out, out
	ctx, stop := context.WithCancelCause(context.Background())
	ended := make(chan enginetest.Outcome, 1)
	m := &machine{a: a, out: out, name: "switchyard-vps-" + a.Identity.Run + "-box-0-c1", ended: ended, stop: stop}
	go func() {
		r, err := e.Reattach(ctx, a)
		ended <- enginetest.Outcome{Result: r, Err: err}
	}()
	m.stopAfter(t)
	return m
}

func (m *machine) stopAfter(t testing.TB) {
	t.Cleanup(func() {
		m.stop(nil)
		if m.ended != nil {
			m.end(t)
		}
	})
}

// end waits for the end of the attempt and returns its result.
func (m *machine) end(t testing.TB) enginetest.Outcome {
	t.Helper()
	ended := m.ended
	m.ended = nil
	return enginetest.End(t, ended)
}

// exec runs a script in the machine with the engine's own client.
func (m *machine) exec(t testing.TB, script string) string {
	t.Helper()
	return dockerRun(t, "exec", m.name, "sh", "-c", script)
}

func (m *machine) prints(t testing.TB, part string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("it has printed %q", m.out)
		}
	}()
	testneeds.Await(t, fmt.Sprintf("%q is printed", part), func() bool { return strings.Contains(m.out.String(), part) })
}

func nothingLeft(t testing.TB, a executor.Attempt) {
	t.Helper()
	if l := enginetest.Left(t, a.ID); len(l) > 0 {
		t.Errorf("left behind: %+v", l)
	}
}
