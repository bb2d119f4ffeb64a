//go:build linux && engines

package guest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/guest"
	"switchyard/dev/testneeds"
)

// patience is how long a test waits for something that should come soon.
const patience = 5 * time.Minute

// result is the outcome of a program.
type result struct {
	status executor.ExitStatus
	err    error
}

// lasting starts a program that lasts until its session ends.
func lasting(t *testing.T, ctx context.Context, g *guest.Guest) <-chan result {
	t.Helper()
	out, ended := &testneeds.Output{}, make(chan result, 1)
	read, write := io.Pipe()
	t.Cleanup(func() { write.Close() })
	go func() {
		status, err := g.Exec(ctx, executor.Command{Args: []string{"sh", "-c", "echo ready; cat"}, Stdin: read, Stdout: out})
		ended <- result{status, err}
	}()
	testneeds.Await(t, "the program starts", func() bool { return out.String() != "" || len(ended) > 0 })
	if out.String() == "" {
		r := <-ended
		t.Fatalf("%+v, %v", r.status, r.err)
	}
	return ended
}

func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal(what)
		panic("unreachable")
	}
}

func prints(t *testing.T, g *guest.Guest, c executor.Command) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if status, err := g.Exec(ctx, c); err != nil || status.Code != 0 {
		t.Fatalf("%q: %+v, %v: %s", c.Args, status, err, &errs)
	}
	return out.String()
}

var echo = executor.Command{Args: []string{"echo", "here"}}

// TestProgramOfLostConnectionHasUnknownEnd checks that a program ends with its connection, and that the next one connects anew.
func TestProgramOfLostConnectionHasUnknownEnd(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(l *login) error{
		"broken connection": func(l *login) error { return l.conn.Close() },
		"silent machine":    func(l *login) error { return l.cmd.Process.Signal(syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newOpenSSH(t)
			g := m.enter(t, func(o *guest.Options) { o.KeepAlive = 6 * time.Second })
			ended := lasting(t, t.Context(), g)
			if err := lose(m.last()); err != nil {
				t.Fatal(err)
			}
			if r := await(t, "the program has not ended", ended); r.err == nil || r.status.Code != executor.CodeUnknown {
				t.Errorf("%+v, error %v; want %d and an error", r.status, r.err, executor.CodeUnknown)
			}
			if got := prints(t, g, echo); got != "here\n" || m.count() != 2 {
				t.Errorf("after %d logins it prints %q", m.count(), got)
			}
		})
	}
}

func TestPausedMachineKeepsItsConnection(t *testing.T) {
	t.Parallel()
	m := newOpenSSH(t)
	g := m.enter(t, func(o *guest.Options) { o.KeepAlive, o.IsPaused = 2*time.Second, func() bool { return true } })
	prints(t, g, echo)
	sshd := m.last().cmd.Process
	if err := sshd.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(8 * time.Second) // a machine that is not paused would be disconnected
	if err := sshd.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := prints(t, g, echo); got != "here\n" || m.count() != 1 {
		t.Errorf("after %d logins it prints %q", m.count(), got)
	}
}

func TestResponsiveMachineKeepsItsConnection(t *testing.T) {
	t.Parallel()
	m := newOpenSSH(t)
	g := m.enter(t, func(o *guest.Options) { o.KeepAlive = 6 * time.Second })
	for range 8 {
		prints(t, g, executor.Command{Args: []string{"sleep", "1"}})
	}
	if m.count() != 1 {
		t.Errorf("%d logins, want 1", m.count())
	}
}

// TestCallsEndInSilentMachine checks that no call outlasts its context for long, whatever the call waits for.
func TestCallsEndInSilentMachine(t *testing.T) {
	t.Parallel()
	m := newOpenSSH(t)
	g := m.enter(t, func(o *guest.Options) { o.KeepAlive = time.Hour }) // the calls are to end before their connections do
	listener, err := g.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := g.Dial(t.Context(), portOf(listener))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := lasting(t, ctx, g)
	for _, one := range m.all() {
		if err := one.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	await(t, "the program has not ended", ended)
	calls := map[string]func(ctx context.Context) error{
		"exec": func(ctx context.Context) error {
			_, err := g.Exec(ctx, echo)
			return err
		},
		"dial": func(ctx context.Context) error {
			_, err := g.Dial(ctx, 1)
			return err
		},
		"listen": func(ctx context.Context) error {
			_, err := g.Listen(ctx, 0)
			return err
		},
		"sftp": func(ctx context.Context) error {
			return g.ServeFiles(ctx, "", struct {
				io.Reader
				io.Writer
			}{strings.NewReader(""), io.Discard})
		},
		"read":  func(ctx context.Context) error { return g.ReadTar(ctx, "", "/etc/passwd", io.Discard) },
		"write": func(ctx context.Context) error { return g.WriteTar(ctx, "", "/tmp", false, strings.NewReader("")) },
		"read a connection": func(context.Context) error {
			time.AfterFunc(50*time.Millisecond, func() { conn.Close() })
			_, err := conn.Read(make([]byte, 1))
			return err
		},
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		if err := await(t, name+" has not ended", done); err == nil {
			t.Errorf("%s: no error", name)
		}
		cancel()
	}
	closed := make(chan error, 1)
	go func() { closed <- listener.Close() }()
	await(t, "the listener is not closed", closed)
}

func TestNothingRunsAfterAttempt(t *testing.T) {
	t.Parallel()
	life, end := context.WithCancel(context.Background())
	defer end()
	g := newOpenSSH(t).enter(t, func(o *guest.Options) { o.Life = life })
	ended := lasting(t, t.Context(), g)
	end()
	await(t, "the program has not ended", ended)
	if _, err := g.Exec(t.Context(), echo); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
	if _, err := g.Dial(t.Context(), 22); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
}

func TestFailedLoginIsReported(t *testing.T) {
	t.Parallel()
	m := newOpenSSH(t, "DenyUsers *")
	_, err := m.enter(t).Exec(t.Context(), echo)
	if err == nil || !strings.Contains(err.Error(), "log in to the machine") {
		t.Errorf("error %v", err)
	}
}

// TestSessionsBeyondTheLimitOpenAnotherConnection checks that the session limit of an sshd applies to a single connection only.
func TestSessionsBeyondTheLimitOpenAnotherConnection(t *testing.T) {
	t.Parallel()
	m := newOpenSSH(t, "MaxSessions 2")
	g := m.enter(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []<-chan result
	for range 5 {
		all = append(all, lasting(t, ctx, g))
	}
	if m.count() != 3 {
		t.Errorf("%d logins, want 3", m.count())
	}
	cancel()
	for _, one := range all {
		await(t, "the program has not ended", one)
	}
	if got := prints(t, g, echo); got != "here\n" {
		t.Errorf("it prints %q", got)
	}
}
