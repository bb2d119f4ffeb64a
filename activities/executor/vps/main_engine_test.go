//go:build engines

package vps_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"google.golang.org/protobuf/types/known/structpb"

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

const patience = 5 * time.Minute

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

var serial atomic.Int64

// attempt returns an attempt of a machine with the given spec fields, and the output of the machine.
func attempt(t testing.TB, fields map[string]any) (a executor.Attempt, out *testneeds.Output) {
	t.Helper()
	run := fmt.Sprintf("vps-%d-%d", time.Now().UnixNano(), serial.Add(1))
	all := map[string]any{"image": enginetest.Image(t), "network": "none"}
	for key, value := range fields {
		all[key] = value
	}
	spec, err := structpb.NewStruct(all)
	if err != nil {
		t.Fatal(err)
	}
	out = &testneeds.Output{}
	return executor.Attempt{
		ID: run + "/box/c1", Identity: executor.Identity{Run: run, Task: "box", Node: "node-" + run, Index: -1, Claim: 1},
		Spec: spec, Stdout: out, Stderr: out, Grace: 2 * time.Minute, Env: map[string]string{"GREETING": "hello"},
	}, out
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
	ended chan ran
	stop  context.CancelCauseFunc
}

type ran struct {
	executor.Result
	err error
}

// start starts an attempt, which runs until the end of the test.
func start(t testing.TB, e *vps.Executor, a executor.Attempt, out *testneeds.Output) *machine {
	t.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	m := &machine{a: a, out: out, name: "switchyard-vps-" + a.Identity.Run + "-box-0-c1", ended: make(chan ran, 1), stop: stop}
	started := make(chan struct{})
	go func() {
		r, err := e.Run(ctx, a, func() { close(started) })
		m.ended <- ran{r, err}
	}()
	m.stopAfter(t)
	select {
	case <-started:
	case r := <-m.ended:
		select {
		case <-started: // a brief machine has ended already
			m.ended <- r
		default:
			m.ended = nil
			t.Fatalf("it has not started: %+v, %v", r.Result, r.err)
		}
	case <-time.After(patience):
		t.Fatal("it does not start")
	}
	return m
}

// reattach continues an attempt that was let go.
func reattach(t testing.TB, e *vps.Executor, a executor.Attempt) *machine {
	t.Helper()
	out := &testneeds.Output{}
	a.Stdout, a.Stderr = out, out
	ctx, stop := context.WithCancelCause(context.Background())
	m := &machine{a: a, out: out, name: "switchyard-vps-" + a.Identity.Run + "-box-0-c1", ended: make(chan ran, 1), stop: stop}
	go func() {
		r, err := e.Reattach(ctx, a)
		m.ended <- ran{r, err}
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
func (m *machine) end(t testing.TB) ran {
	t.Helper()
	select {
	case r := <-m.ended:
		m.ended = nil
		return r
	case <-time.After(patience):
		t.Fatal("it does not end")
		return ran{}
	}
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

// left lists the containers of an attempt.
func left(t testing.TB, a executor.Attempt) []container.Summary {
	t.Helper()
	found, err := enginetest.Engine(t).ContainerList(context.Background(), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", "switchyard.id="+a.ID)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func nothingLeft(t testing.TB, a executor.Attempt) {
	t.Helper()
	if l := left(t, a); len(l) > 0 {
		t.Errorf("left behind: %+v", l)
	}
}
