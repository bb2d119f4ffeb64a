package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
	"switchyard/dev/testneeds"
)

// lasting is an attempt that runs until it or the test ends.
type lasting struct {
	executor.Attempt
	inside executor.Inside
	end    func()
	// result is set after end.
	result executor.Result
}

// startLasting starts an attempt that prints "ready" and continues to run.
func startLasting(t *testing.T, e *Executor, a executor.Attempt) *lasting {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan struct{})
	l := &lasting{Attempt: a}
	go func() {
		defer close(ended)
		var err error
		if l.result, err = e.Run(ctx, a, func() { close(ready) }); err != nil {
			t.Errorf("the attempt: %v", err)
		}
	}()
	l.end = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(l.end)
	select {
	case <-ready:
	case <-ended:
		t.Fatal("the attempt has not started")
	}
	// The attempt can be entered only once spawned has returned.
	testneeds.Await(t, "the attempt can be entered", func() bool {
		var err error
		l.inside, err = e.Enter(t.Context(), a.ID)
		return err == nil
	})
	return l
}

func lastingAttempt(t *testing.T, sandbox bool) executor.Attempt {
	t.Helper()
	root := filepath.Join(t.TempDir(), "private")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	a := executor.Attempt{
		ID:   fmt.Sprintf("%s/%d/c1", t.Name(), time.Now().UnixNano()),
		Spec: spec(t, map[string]any{"command": "while :; do sleep 0.1; done", "sandbox": sandbox}),
		Dirs: executor.Dirs{Workspace: workspaceIn(t, root, "own"), Base: t.TempDir()}, Ending: executor.Ending{Grace: time.Second},
		Env: map[string]string{"GREETING": "hello"},
	}
	if sandbox {
		a.Limits = executor.Limits{Memory: 512 << 20, Processes: 200}
	}
	a.Dirs.Temp = filepath.Join(a.Dirs.Workspace, "tmp")
	return a
}

func workspaceIn(t *testing.T, root, name string) string {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "input.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestInsideConformance(t *testing.T) { insideConformance(t, newExecutor(t, Options{}), false) }

func insideConformance(t *testing.T, e *Executor, sandbox bool) {
	var dirs sync.Map
	executortest.RunInside(t, executortest.InsideHarness{
		Enter: func(t *testing.T) executor.Inside {
			l := startLasting(t, e, lastingAttempt(t, sandbox))
			dirs.Store(t.Name(), l.Dirs.Workspace)
			return l.inside
		},
		Dir: func(t *testing.T) string {
			dir, _ := dirs.Load(t.Name())
			return dir.(string)
		},
		Env: [2]string{"GREETING", "hello"},
	})
}

// output runs a script in an attempt and returns what it prints.
func (l *lasting) output(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	status, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"sh", "-c", script}, Stdout: &out})
	if err != nil || status.Code != 0 {
		t.Fatalf("%s: %+v, %q, error %v", script, status, out.String(), err)
	}
	return out.String()
}

func TestEnteredProgramsEndWithTheAttempt(t *testing.T) {
	for _, m := range []Mechanism{portable, Group} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			enteredProgramsEnd(t, m)
		})
	}
}

func enteredProgramsEnd(t *testing.T, m Mechanism) {
	e := newExecutor(t, Options{Mechanism: m})
	l := startLasting(t, e, lastingAttempt(t, false))
	type end struct {
		status executor.ExitStatus
		err    error
	}
	scripts := []string{
		`trap '' HUP TERM INT; echo ready; while :; do sleep 0.05; done`,
		`echo ready; exec sleep 100000`,
	}
	if m != Group {
		scripts = append(scripts, `trap '' HUP; setsid env -i sh -c 'trap "" HUP TERM; while :; do sleep 0.05; done' & echo ready; wait`)
	}
	ends := make(chan end, len(scripts))
	for _, script := range scripts {
		read, write := io.Pipe()
		go func() {
			status, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"sh", "-c", script}, Stdout: write})
			ends <- end{status, err}
		}()
		if _, err := io.ReadFull(read, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, read) }()
		defer read.Close()
	}
	l.end()
	if left := leftOf(t, l.ID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for range scripts {
		one := <-ends
		if one.err != nil || one.status.Signal == "" {
			t.Errorf("%+v, error %v", one.status, one.err)
		}
	}
	if _, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"true"}}); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v of an attempt that has ended, want ErrNotRunning", err)
	}
	if _, err := e.Enter(t.Context(), l.ID); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v of an attempt that has ended, want ErrNotRunning", err)
	}
}

func TestPausedAttemptRefusesPrograms(t *testing.T) {
	e := newExecutor(t, Options{})
	l := startLasting(t, e, lastingAttempt(t, false))
	if err := e.Pause(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	_, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"true"}})
	if _, ok := errors.AsType[*executor.Refusal](err); !ok {
		t.Errorf("error %v, want a Refusal", err)
	}
	if err := e.Resume(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	if got := l.output(t, "echo again"); got != "again\n" {
		t.Errorf("%q", got)
	}
	if _, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"true"}, User: "nobody"}); err == nil {
		t.Error("another user is accepted")
	}
}
