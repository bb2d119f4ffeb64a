//go:build linux && engines

package container_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/activities/executor/executortest"
	"switchyard/dev/testneeds"
)

// enter starts a container that lasts until the end of the test, and returns its inside.
func enter(t *testing.T, e *containers.Executor, fields map[string]any) (executor.Inside, executor.Attempt) {
	t.Helper()
	a, _, _ := enginetest.Attempt(t, "build", fields)
	a.Env = map[string]string{"GREETING": "hello"}
	ctx, cancel := context.WithCancel(context.Background())
	ended := enginetest.Begin(t, ctx, e, a)
	t.Cleanup(func() {
		cancel()
		enginetest.End(t, ended)
	})
	in, err := e.Enter(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	return in, a
}

// TestInsideConformance enters a container as root. The machines of package vps are containers that are entered as another user.
func TestInsideConformance(t *testing.T) {
	in, _ := enter(t, newExecutor(t, containers.Options{}), map[string]any{"command": "sleep 100000"})
	executortest.RunInside(t, executortest.InsideHarness{
		Enter: func(*testing.T) executor.Inside { return in },
		Dir:   func(*testing.T) string { return "/tmp" },
		Env:   [2]string{"GREETING", "hello"},
	})
}

// execOutput runs a command and returns its output and its exit status.
func execOutput(t *testing.T, in executor.Inside, c executor.Command) (string, executor.ExitStatus) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	status, err := in.Exec(t.Context(), c)
	if err != nil {
		t.Fatalf("exec %+v: %v", c, err)
	}
	return out.String(), status
}

func TestExecHasUserAndDirectory(t *testing.T) {
	t.Parallel()
	in, _ := enter(t, newExecutor(t, containers.Options{}), map[string]any{"command": "sleep 100000", "workingDirectory": "/etc"})
	for _, test := range []struct {
		c    executor.Command
		want string
	}{
		{executor.Command{Line: "id -u; pwd; echo $USER $SHELL"}, "0\n/etc\nroot /bin/sh\n"},
		{executor.Command{Line: "id -u; echo $HOME", User: "worker"}, "1000\n/\n"},
		{executor.Command{Args: []string{"id", "-g"}, User: "1000:7"}, "7\n"},
		{executor.Command{Args: []string{"pwd"}, Dir: "/tmp"}, "/tmp\n"},
		{executor.Command{Stdin: strings.NewReader("echo $0")}, "-sh\n"},
	} {
		if got, status := execOutput(t, in, test.c); got != test.want && strings.TrimPrefix(got, "/bin/") != strings.TrimPrefix(test.want, "-") || status.Code != 0 {
			t.Errorf("%+v prints %q, %+v, want %q", test.c, got, status, test.want)
		}
	}
	_, err := in.Exec(t.Context(), executor.Command{Args: []string{"true"}, User: "nobody-here"})
	if err == nil {
		t.Error("a user that is not there runs a command")
	}
}

// A container that is suspended or has ended cannot be entered.
func TestEnterNeedsContainerThatRuns(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, containers.Options{})
	if _, err := e.Enter(t.Context(), "none"); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
	a, _, _ := enginetest.Attempt(t, "build", map[string]any{"command": "while :; do sleep 0.05; done"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := enginetest.Begin(t, ctx, e, a)
	in, err := e.Enter(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Pause(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	_, err = in.Exec(t.Context(), executor.Command{Args: []string{"true"}})
	if _, ok := errors.AsType[*executor.Refusal](err); !ok {
		t.Errorf("error %v while it is suspended, want a Refusal", err)
	}
	if err := e.Resume(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	ready := &testneeds.Output{}
	read, write := io.Pipe()
	defer write.Close()
	last := make(chan error, 1)
	go func() {
		_, err := in.Exec(context.Background(), executor.Command{Args: []string{"sh", "-c", "echo ready; cat"}, Stdin: read, Stdout: ready})
		last <- err
	}()
	testneeds.Await(t, "the last command has printed or ended", func() bool { return strings.Contains(ready.String(), "ready") || len(last) > 0 })
	if len(last) > 0 {
		t.Fatalf("the last command ended with %v, and printed %q", <-last, ready)
	}
	cancel()
	if r := enginetest.End(t, ended); r.Err != nil || !r.Stopped {
		t.Errorf("%+v, %v", r.Result, r.Err)
	}
	<-last // the last command ends with the container, with an exit code or ErrNotRunning
	if _, err := in.Exec(t.Context(), executor.Command{Args: []string{"true"}}); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v after its end, want ErrNotRunning", err)
	}
	if _, err := in.Dial(t.Context(), 80); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v after its end, want ErrNotRunning", err)
	}
}
