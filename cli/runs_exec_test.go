package cli

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/term"
	"google.golang.org/protobuf/testing/protocmp"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

func TestExecReturnsTheExitCodeAndBothStreams(t *testing.T) {
	f := fake(t)
	got := runWith(t, map[string]string{"HERE": "value"}, "unread", "runs", "exec", "--gateway", f.url, "night", "build", "-u", "me", "-w", "/tmp", "-e", "A=1,2", "-e", "HERE", "-e", "GONE", "--", "exit", "42")
	if got.code != 42 || got.stdout != "out\n" || got.stderr != "err\n" {
		t.Errorf("%+v", got)
	}
	want := &v1.SessionHeader{Kind: "exec", RunId: "night", Task: "build", User: "me", Exec: &v1.SessionExec{
		Command: []string{"exit", "42"}, User: "me", Directory: "/tmp", Env: map[string]string{"A": "1,2", "HERE": "value"},
	}}
	if diff := cmp.Diff(want, f.sessions.header(t), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestExecPipesEveryByte(t *testing.T) {
	f := fake(t)
	text := strings.Repeat("\x00\xff\r\n~.\x1b[31m", 100_000)
	got := runWith(t, nil, text, "runs", "exec", "--gateway", f.url, "night", "-i", "--", "cat")
	if got.code != 0 || got.stdout != text || got.stderr != "" {
		t.Errorf("code %d, %d of %d bytes, %s", got.code, len(got.stdout), len(text), got.stderr)
	}
}

func TestExecSaysWhyItCannotRun(t *testing.T) {
	for _, test := range []struct {
		refusal *v1.SessionReply
		command string
		code    int
		said    string
	}{
		{&v1.SessionReply{Code: "not_found", Error: "run nightly has no task \x1b[2Jbuidl"}, "cat", exit.CodeUsage, "switchyard: run nightly has no task buidl\n"},
		{&v1.SessionReply{Code: "failed_precondition", Error: "task build has ended"}, "cat", exit.CodeNotDone, "switchyard: task build has ended\n"},
		{&v1.SessionReply{Code: "permission_denied", Error: "it is not yours"}, "cat", exit.CodeNotAllowed, "switchyard: it is not yours\n"},
		{&v1.SessionReply{Code: "unavailable", Error: "node n is away"}, "cat", exit.CodeSystem, "switchyard: node n is away\n"},
		{nil, "none", exit.CodeNotDone, "switchyard: there is no program none\n"},
	} {
		f := fake(t)
		f.sessions.refusal = test.refusal
		got := runWith(t, nil, "", "runs", "exec", "--gateway", f.url, "night", "build", "--", test.command)
		if got.code != test.code || !strings.HasPrefix(got.stderr, test.said) {
			t.Errorf("%+v, want %d %q", got, test.code, test.said)
		}
	}
	runWith(t, nil, "", "runs", "exec", "--gateway", "127.0.0.1:1", "night", "build", "--", "cat").ends(t, exit.CodeSystem, "the gateway at http://127.0.0.1:1 cannot be reached")
	for _, args := range [][]string{{"night", "build", "ls"}, {}, {"night", "build", "-it", "--", "cat"}, {"night", "-e", "=x"}} {
		runWith(t, nil, "", append([]string{"runs", "exec", "--gateway", "127.0.0.1:1"}, args...)...).ends(t, exit.CodeUsage, "")
	}
}

func TestExecReportsTheTaskAfterALostSession(t *testing.T) {
	f := fake(t)
	nightly(f)
	f.run.Tasks["build"].State = v1.TaskRunning
	got := runWith(t, nil, "", "runs", "exec", "--gateway", f.url, "night", "build", "--", "lose")
	if got.code != exit.CodeLost || got.stdout != "ready\n" || !strings.Contains(got.stderr, "the link to node n was lost") || !strings.Contains(got.stderr, "the task is still running") {
		t.Errorf("%+v", got)
	}
	c := start(t, nil, "", "runs", "exec", "--gateway", f.url, "night", "build", "--", "shell")
	c.stdout.await(t, "ready")
	f.server.CloseClientConnections()
	f.server.Listener.Close()
	f.sessions.cut()
	c.ends(t, exit.CodeLost, "the state of the program is unknown")
}

func TestSignalsGoToAProgramWithoutATerminal(t *testing.T) {
	f := fake(t)
	c := start(t, nil, "", "runs", "exec", "--gateway", f.url, "night", "build", "--", "shell")
	c.stdout.await(t, "ready")
	for _, want := range []string{"INT", "INT\nINT"} {
		if !c.sys.signals.offer(os.Interrupt) {
			t.Fatal("the program is not sent SIGINT")
		}
		c.stdout.await(t, want)
	}
	if c.sys.signals.offer(os.Interrupt) {
		t.Error("the third Ctrl-C does not leave")
	}
	if c.sys.signals.offer(syscall.SIGHUP) || !c.sys.signals.offer(syscall.SIGTERM) {
		t.Error("SIGHUP does not leave, or SIGTERM does")
	}
	c.ends(t, 143, "")
	if c.sys.signals.offer(os.Interrupt) {
		t.Error("a program that has ended is sent a signal")
	}
}

// terminalCommand is a command with a terminal of its own.
type terminalCommand struct {
	*command
	keyboard *os.File
	tty      *os.File
	before   *term.State
	shown    *buffer
}

func startOnTerminal(t *testing.T, args ...string) *terminalCommand {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	must(t, pty.Setsize(ptmx, &pty.Winsize{Cols: 120, Rows: 50}))
	before, err := term.GetState(int(tty.Fd()))
	must(t, err)
	shown, read := newBuffer(), make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(shown, ptmx)
	}()
	c := startWith(t, func(s *system) { s.stdin, s.rawStdout, s.rawStderr = tty, tty, tty }, map[string]string{"TERM": "vt100"}, "", args...)
	t.Cleanup(func() {
		_ = tty.Close()
		_, _ = io.WriteString(ptmx, "\n") // wakes pending reads of the terminal
		<-read
		_ = ptmx.Close()
	})
	return &terminalCommand{c, ptmx, tty, before, shown}
}

func (c *terminalCommand) typeKeys(t *testing.T, keys string) {
	t.Helper()
	_, err := io.WriteString(c.keyboard, keys)
	must(t, err)
}

// ends waits for the end of the command and checks its exit code, a text on its standard error, and that the terminal is
// restored.
func (c *terminalCommand) ends(t *testing.T, code int, says string) {
	t.Helper()
	c.command.ends(t, code, says)
	if now, err := term.GetState(int(c.tty.Fd())); err != nil || *now != *c.before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
}

func TestShellHasTheTerminal(t *testing.T) {
	f := fake(t)
	c := startOnTerminal(t, "runs", "exec", "--gateway", f.url, "night", "build")
	c.shown.await(t, "ready 120x50")
	exec := f.sessions.header(t).GetExec()
	if !exec.GetTerminal() || exec.GetTerminalType() != "vt100" || !exec.GetStdin() || len(exec.GetCommand()) != 0 {
		t.Errorf("%v", exec)
	}
	c.typeKeys(t, "a\x03b\x1a~.\r")
	c.shown.await(t, `<"a\x03b\x1a~.">`) // Ctrl-C and Ctrl-Z are plain keys, and ~. counts only at the start of a line
	c.typeKeys(t, "~?")
	c.shown.await(t, "leave the session at once")
	c.typeKeys(t, "~~x\r")
	c.shown.await(t, `<"~x">`)
	must(t, pty.Setsize(c.keyboard, &pty.Winsize{Cols: 100, Rows: 40}))
	must(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH))
	c.shown.await(t, "100x40")
	c.typeKeys(t, "exit\r")
	c.ends(t, 7, "")
}

func TestEscapeLeavesASession(t *testing.T) {
	f := fake(t)
	c := startOnTerminal(t, "ssh", "--gateway", f.url, "night")
	c.shown.await(t, "ready")
	c.typeKeys(t, "a\r~.")
	c.ends(t, exit.CodeLost, "you have left task build of run nightly-4g5h6jkm; the program may still be running there")
}

func TestTerminalIsRestoredAfterALossAndAnInterrupt(t *testing.T) {
	f := fake(t)
	c := startOnTerminal(t, "ssh", "--gateway", f.url, "night")
	c.shown.await(t, "ready")
	f.sessions.cut()
	c.ends(t, exit.CodeLost, "")
	c = startOnTerminal(t, "ssh", "--gateway", f.url, "night")
	c.shown.await(t, "ready")
	c.interrupt(exit.ErrHungUp)
	c.ends(t, exit.CodeInterrupted, "")
}

// TestExecIsInterruptedWhileItConnects checks that Ctrl-C ends the command while the gateway does not answer.
func TestExecIsInterruptedWhileItConnects(t *testing.T) {
	f := fake(t)
	f.sessions.deaf = true
	c := start(t, nil, "", "runs", "exec", "--gateway", f.url, "night", "--", "cat")
	for f.sessions.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	if c.sys.signals.offer(os.Interrupt) {
		t.Error("a program that does not run is sent a signal")
	}
	c.interrupt(exit.ErrInterrupted)
	c.ends(t, exit.CodeInterrupted, "")
	f.sessions.cut()
}
