package executortest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// InsideHarness adapts the suite of executor.Inside to one kind of attempt.
type InsideHarness struct {
	// Enter starts an attempt that lasts until the end of the test, and returns its inside.
	Enter func(t *testing.T) executor.Inside
	// Dir returns an existing directory of that attempt that its user may write to. It is called after Enter in the same test and
	// returns the same directory each time.
	Dir func(t *testing.T) string
	// Env is the name and the value of an environment variable of the attempt's program.
	Env [2]string
	// User is the user who reads and writes files, or "" for the user of the attempt.
	User string
	// NoExec reports that the inside cannot run programs, but offers files and the network.
	NoExec bool
	// NoHardLinks reports that an archive holds each hard link of a file as a separate file, since SFTP does not reveal hard
	// links.
	NoHardLinks bool
	// OpensDevices reports that SFTP opens devices, as the sftp-server of a whole machine does: they are the machine's own
	// devices.
	OpensDevices bool
	// IsRefusal reports whether an error reads like an executor.Refusal. If it is nil, the error must be one.
	IsRefusal func(error) bool
	// LargeOutput is how many bytes execBinary transfers; 0 means 2 MiB.
	LargeOutput int64
}

// RunInside runs the suite of executor.Inside. Every executor that can Enter passes it with an attempt that only sleeps and that
// has sh, cat, stty, head and sleep. Implementations of Inside on top of another one, such as a session over a network, pass it,
// too. For example:
//
//	executortest.RunInside(t, executortest.InsideHarness{
//		Enter: func(t *testing.T) executor.Inside {
//			id := start(t, "sleep 100000") // and ends it with t.Cleanup
//			in, err := e.Enter(t.Context(), id)
//			if err != nil {
//				t.Fatal(err)
//			}
//			return in
//		},
//		Dir: func(*testing.T) string { return "/tmp" },
//		Env: [2]string{"GREETING", "hello"},
//	})
func RunInside(t *testing.T, h InsideHarness) {
	// Programs inherit ignored signals, for example under nohup, and a shell cannot trap those. Signals that are caught are not
	// inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	if !h.NoExec {
		atOnce(t, map[string]func(*testing.T){
			"exec: pipes":           h.execPipes,
			"exec: environment":     h.execEnvironment,
			"exec: ends":            h.execEnds,
			"exec: cannot start":    h.execCannotStart,
			"exec: signals":         h.execSignals,
			"exec: binary":          h.execBinary,
			"exec: background":      h.execBackground,
			"exec: silent stdin":    h.execSilentStdin,
			"exec: context":         h.execContext,
			"exec: shell":           h.execShell,
			"terminal: size":        h.terminalSize,
			"terminal: input":       h.terminalInput,
			"terminal: interrupt":   h.terminalInterrupt,
			"terminal: end of text": h.terminalEnd,
			"terminal: large":       h.terminalLarge,
		})
	}
	atOnce(t, map[string]func(*testing.T){
		"network: half-close": h.networkHalfClose,
		"network: nobody":     h.networkRefused,
		"network: taken":      h.networkTaken,
		"sftp":                h.sftp,
		"sftp: ends":          h.sftpEnds,
		"tar: both ways":      h.tarBothWays,
		"tar: rename":         h.tarRename,
		"tar: refused":        h.tarRefused,
		"tar: broken off":     h.tarBrokenOff,
		"tar: missing":        h.tarMissing,
	})
}

// shell returns a command that runs a script.
func shell(script string) executor.Command {
	return executor.Command{Args: []string{"sh", "-c", script}}
}

// exec runs a command to its end and fails the test on an error.
func exec(t *testing.T, in executor.Inside, c executor.Command) executor.ExitStatus {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the suite's patience"))
	defer cancel()
	status, err := in.Exec(ctx, c)
	if err != nil {
		t.Fatalf("exec %q: %v", c.Args, err)
	}
	return status
}

// prints runs a command and returns its standard output. It fails the test unless the command exits with 0.
func prints(t *testing.T, in executor.Inside, c executor.Command) string {
	t.Helper()
	var out, errs buffer
	c.Stdout, c.Stderr = &out, &errs
	if status := exec(t, in, c); status != (executor.ExitStatus{}) {
		t.Fatalf("exec %q: %+v, stderr %q", c.Args, status, errs.String())
	}
	return out.String()
}

// await waits until the output contains a text.
func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !strings.Contains(b.String(), text) {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not printed within %v, but %q", text, patience, b.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// background is a command that runs while the test continues.
type background struct {
	stdin    *io.PipeWriter
	out      buffer
	signals  chan string
	resizes  chan executor.WindowSize
	finished chan struct{}
	status   executor.ExitStatus
	err      error
}

// begin starts a command with all streams, and with a terminal if size is not nil.
func begin(t *testing.T, ctx context.Context, in executor.Inside, c executor.Command, size *executor.WindowSize) *background {
	t.Helper()
	read, write := io.Pipe()
	b := &background{stdin: write, signals: make(chan string), resizes: make(chan executor.WindowSize), finished: make(chan struct{})}
	c.Stdin, c.Stdout, c.Stderr, c.Signals = read, &b.out, &b.out, b.signals
	if size != nil {
		c.Terminal = &executor.Terminal{Type: "xterm-256color", Size: *size, Resizes: b.resizes}
	}
	go func() {
		defer close(b.finished)
		b.status, b.err = in.Exec(ctx, c)
		read.Close()
	}()
	t.Cleanup(func() {
		write.Close()
		b.wait(t)
	})
	return b
}

func (b *background) wait(t *testing.T) {
	t.Helper()
	select {
	case <-b.finished:
	case <-time.After(patience):
		t.Fatalf("the program has not ended within %v; it printed %q", patience, b.out.String())
	}
}

// awaitExit waits for the command to end, fails the test on an error, and returns the exit status.
func (b *background) awaitExit(t *testing.T) executor.ExitStatus {
	t.Helper()
	b.wait(t)
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.status
}

// typeText writes a text to standard input.
func (b *background) typeText(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(b.stdin, text); err != nil {
		t.Fatal(err)
	}
}

func (h InsideHarness) isRefusal(err error) bool {
	if h.IsRefusal != nil {
		return h.IsRefusal(err)
	}
	_, ok := errors.AsType[*executor.Refusal](err)
	return ok
}

// wantRefusal fails the test unless err is a Refusal.
func (h InsideHarness) wantRefusal(t *testing.T, what string, err error) {
	t.Helper()
	if !h.isRefusal(err) {
		t.Errorf("%s: error %v, want a Refusal", what, err)
	}
}
