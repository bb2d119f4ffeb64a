package processes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Limit bounds how long a test waits for an event that must happen. It far exceeds the time that anything takes, so that no
// test fails on a slow machine.
const Limit = 5 * time.Minute

// Program is a process that a test uses. It is killed at the end of the test, which logs the end of its
// output if the test has failed.
type Program struct {
	*Process
	t *testing.T
}

// StartForTest starts a command for a test. Its environment is a clean one with the variables of the command.
func StartForTest(t *testing.T, cmd *exec.Cmd) *Program {
	t.Helper()
	cmd.Env = append(CleanEnv(), cmd.Env...)
	p, err := Start(cmd, t.TempDir(), filepath.Base(cmd.Path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() }) // it may end meanwhile
	return Borrow(t, p)
}

// Borrow returns a process that outlives the test, as a program of the test.
func Borrow(t *testing.T, p *Process) *Program {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\nstdout:\n%s\nstderr:\n%s", strings.Join(p.Cmd.Args, " "), Tail(p.Stdout.String()), Tail(p.Stderr.String()))
		}
	})
	return &Program{p, t}
}

// Wait waits for the program's end and returns its exit code.
func (p *Program) Wait() int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	code, err := p.Process.Wait(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	return code
}

// Field waits for a line on standard output that begins with a word, and returns the rest of the line.
func (p *Program) Field(word string) string {
	p.t.Helper()
	return p.read(func(ctx context.Context) (string, error) { return p.Process.Field(ctx, word) })
}

// Line waits for a line of the output that contains a text, and returns the line.
func (p *Program) Line(o Output, text string) string {
	p.t.Helper()
	return p.read(func(ctx context.Context) (string, error) { return p.Process.Line(ctx, o, text) })
}

func (p *Program) read(line func(context.Context) (string, error)) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	text, err := line(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// Signal sends a signal to the program.
func (p *Program) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Await waits until a condition holds.
func Await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	if err := Eventually(ctx, what, func() (bool, error) { return holds(), nil }); err != nil {
		t.Fatal(err)
	}
}

// WriteFile writes a file, such as a definition, into a folder of the test and returns its path.
func WriteFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// AwaitText reads a text until it meets a condition, and returns it.
func AwaitText(t *testing.T, what string, read func() string, holds func(text string) bool) string {
	t.Helper()
	var text string
	defer func() {
		if t.Failed() {
			t.Logf("%s: the last text was\n%s", what, Tail(text))
		}
	}()
	Await(t, what, func() bool {
		text = read()
		return holds(text)
	})
	return text
}

// Tail returns the end of a long text.
func Tail(text string) string { return text[max(0, len(text)-4000):] }
