//go:build linux && engines

package vps_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/executortest"
	"switchyard/dev/testneeds"
)

func TestInsideConformance(t *testing.T) {
	e, _ := newExecutor(t, containers.Options{})
	a, out := attempt(t, map[string]any{"user": "worker"})
	start(t, e, a, out)
	in, err := e.Enter(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	executortest.RunInside(t, executortest.InsideHarness{
		Enter: func(*testing.T) executor.Inside { return in },
		Dir:   func(*testing.T) string { return "/tmp" },
		Env:   [2]string{"GREETING", "hello"},
	})
}

// Sessions start at home or in the directory of the spec. A restart ends them, and they work again after a restart and
// under a later worker.
func TestSessionsStartAtHomeAndEndWithARestart(t *testing.T) {
	t.Parallel()
	e, _ := newExecutor(t, containers.Options{})
	for dir, want := range map[string]string{"": "/\n", "/etc": "/etc\n"} {
		a, out := attempt(t, map[string]any{"workingDirectory": dir})
		m := start(t, e, a, out)
		in, err := e.Enter(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		pwd := func(in executor.Inside) {
			t.Helper()
			var out bytes.Buffer
			if status, err := in.Exec(t.Context(), executor.Command{Args: []string{"pwd"}, Stdout: &out}); err != nil || status.Code != 0 || out.String() != want {
				t.Errorf("%+v, error %v, prints %q, want %q", status, err, out.String(), want)
			}
		}
		pwd(in)
		ready := &testneeds.Output{}
		ended := make(chan executor.ExitStatus, 1)
		go func() {
			status, _ := in.Exec(context.Background(), executor.Command{Line: "echo kept >/tmp/file; echo ready; sleep 100000", Stdout: ready})
			ended <- status
		}()
		testneeds.Await(t, "a session runs", func() bool { return ready.String() == "ready\n" })
		if err := e.Restart(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		select {
		case status := <-ended:
			if status.Code == 0 {
				t.Errorf("a session ends with %+v", status)
			}
		case <-time.After(5 * time.Minute):
			t.Fatal("a session does not end with a restart")
		}
		pwd(in)
		if got := m.exec(t, "cat /tmp/file"); got != "kept\n" {
			t.Errorf("a file has %q", got)
		}
		if _, err := in.Dial(t.Context(), 9); err == nil || errors.Is(err, executor.ErrNotRunning) {
			t.Errorf("error %v, want a Refusal", err)
		}
		go func() {
			_, _ = in.Exec(context.Background(), executor.Command{Line: "echo again; sleep 100000", Stdout: ready})
			ended <- executor.ExitStatus{}
		}()
		testneeds.Await(t, "another session runs", func() bool { return ready.String() == "ready\nagain\n" })
		m.stop(executor.ErrLetGo)
		m.end(t)
		<-ended
		m = reattach(t, e, a)
		testneeds.Await(t, "it is entered", func() bool { in, err = e.Enter(t.Context(), a.ID); return err == nil })
		pwd(in)
		m.stop(nil)
		m.end(t)
		nothingLeft(t, a)
	}
}
