package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/executortest"
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
	eventually(t, "the attempt can be entered", func() bool {
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
		ID:           fmt.Sprintf("%s/%d/c1", t.Name(), time.Now().UnixNano()),
		Spec:         spec(t, map[string]any{"command": "while :; do sleep 0.1; done", "sandbox": sandbox}),
		Limits:       executor.Limits{Memory: 512 << 20, Processes: 200},
		WorkspaceDir: workspaceIn(t, root, "own"), BaseDir: t.TempDir(), Grace: time.Second,
		Env: map[string]string{"GREETING": "hello"},
	}
	a.TempDir = filepath.Join(a.WorkspaceDir, "tmp")
	return a
}

func TestInsideConformance(t *testing.T) {
	for _, sandbox := range []bool{false, true} {
		for _, m := range mechanismsHere(t) {
			t.Run(fmt.Sprintf("%s, sandbox %v", m, sandbox), func(t *testing.T) {
				e := newExecutor(t, Options{Mechanism: m})
				if sandbox {
					e = needSandbox(t, Options{Mechanism: m})
				}
				var dirs sync.Map
				executortest.RunInside(t, executortest.InsideHarness{
					Enter: func(t *testing.T) executor.Inside {
						l := startLasting(t, e, lastingAttempt(t, sandbox))
						dirs.Store(t.Name(), l.WorkspaceDir)
						return l.inside
					},
					Dir: func(t *testing.T) string {
						dir, _ := dirs.Load(t.Name())
						return dir.(string)
					},
					Env: [2]string{"GREETING", "hello"},
				})
			})
		}
	}
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

func TestEnteredProgramsShareTheSandboxOfTheAttempt(t *testing.T) {
	e := needSandbox(t, Options{})
	a := lastingAttempt(t, true)
	facts := `id -u; id -g; id -G; grep -E "^(Cap|NoNewPrivs|Seccomp)" /proc/self/status; for s in mnt net ipc; do readlink /proc/self/ns/$s; done; ls /proc | grep -c "^[0-9]*$" >/dev/null; cat /tmp/mark`
	file := filepath.Join(a.WorkspaceDir, "facts")
	a.Spec = spec(t, map[string]any{"command": "echo mark >/tmp/mark; { " + facts + "; } >$FILE.part; mv $FILE.part $FILE; while :; do sleep 0.1; done", "sandbox": true})
	a.Env["FILE"] = file
	l := startLasting(t, e, a)
	eventually(t, "the attempt has told its facts", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.output(t, facts); got != string(want) {
		t.Errorf("the attempt is\n%sand who enters it\n%s", want, got)
	}
	for script, want := range map[string]string{
		`(echo x >/etc/x) 2>/dev/null || echo cannot`:                     "cannot\n",
		fmt.Sprintf("kill -0 %d 2>/dev/null || echo cannot", os.Getpid()): "cannot\n",
		`tty 2>&1 || true`: "not a tty\n",
	} {
		if got := l.output(t, script); got != want {
			t.Errorf("%s prints %q, want %q", script, got, want)
		}
	}
	// The network is the attempt's own, so the port is not one of the node.
	listener, err := l.inside.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("the node has the port, too")
	}
	// The program can open its terminal by name.
	var out strings.Builder
	status, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"sh", "-c", `echo named >"$(tty)"`}, Stdout: &out, Terminal: &executor.Terminal{}})
	if err != nil || status.Code != 0 || out.String() != "named\r\n" {
		t.Errorf("%+v, %q, error %v", status, out.String(), err)
	}
}

func TestEnteredProgramsEndWithTheAttempt(t *testing.T) {
	for _, m := range append(mechanismsHere(t), Group) {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
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
		})
	}
}

func TestEnteredProgramsCountTowardsTheMemoryLimit(t *testing.T) {
	for _, sandbox := range []bool{false, true} {
		t.Run(fmt.Sprint(sandbox), func(t *testing.T) {
			t.Parallel()
			e := newExecutor(t, Options{})
			needLimits(t, e)
			if sandbox {
				e = needSandbox(t, Options{})
			}
			a := lastingAttempt(t, sandbox)
			a.Limits = executor.Limits{Memory: 64 << 20, Processes: 200}
			l := startLasting(t, e, a)
			status, err := l.inside.Exec(t.Context(), executor.Command{Args: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"}})
			if err != nil || status.Signal != "KILL" {
				t.Errorf("%+v, error %v", status, err)
			}
		})
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
