package cli

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	v1 "switchyard/proto/switchyard/v1"
)

// onTerminal runs a command whose standard error is a terminal of 24 lines of 72 cells, and returns what it wrote there.
func onTerminal(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	stdout, err := os.Create(t.TempDir() + "/stdout")
	must(t, err)
	defer stdout.Close()
	return onTerminals(t, stdout, env, args...)
}

// onTerminals runs a command with the given standard output; nil makes standard output the terminal, like standard
// error.
func onTerminals(t *testing.T, stdout *os.File, env map[string]string, args ...string) string {
	t.Helper()
	keyboard, terminal, err := pty.Open()
	must(t, err)
	defer keyboard.Close()
	must(t, pty.Setsize(keyboard, &pty.Winsize{Rows: 24, Cols: 72}))
	if stdout == nil {
		stdout = terminal
	}
	seen := make(chan string)
	go func() {
		text, _ := io.ReadAll(keyboard) // until the other end is closed
		seen <- string(text)
	}()
	sys := newSystem(os.Stdin, stdout, terminal, func(name string) string { return env[name] })
	execute(t.Context(), sys, args)
	must(t, terminal.Close())
	return strings.ReplaceAll(<-seen, "\r\n", "\n")
}

func TestLiveTableOnATerminal(t *testing.T) {
	f := fake(t)
	nightly(f)
	text := onTerminal(t, nil, "runs", "watch", "last", "--gateway", f.url)
	if !strings.Contains(text, "\x1b[31mdead_letter\x1b[0m") {
		t.Errorf("states are not painted:\n%q", text)
	}
	if n := strings.Count(text, "TASK "); n < 2 {
		t.Errorf("the table was drawn %d times:\n%q", n, text)
	}
	// The last picture stays on screen, and the final output follows below it.
	last := text[strings.LastIndex(text, "run nightly-4g5h6jkm  "):]
	for _, want := range []string{"fetch", "build", "deploy", "notify", "shadowed", "failed\x1b[0m after 9.0s"} {
		if !strings.Contains(last, want) {
			t.Errorf("no %q in the end:\n%q", want, last)
		}
	}
	if i := strings.Index(last, "A\r"); i >= 0 && strings.Contains(last[:i], "\x1b[") && strings.Contains(last[i:], "TASK") {
		t.Errorf("the last picture was drawn over:\n%q", last)
	}
}

// TestListsFitTheTerminal checks that lists wider than the terminal are cut there and nowhere else.
func TestListsFitTheTerminal(t *testing.T) {
	f := fake(t)
	const reason = "a reason that is much longer than any terminal has room for at the end of a line"
	script(f, &v1.ListDeadLettersResponse{Items: []*v1.DeadLetter{
		{Run: "build-and-deploy-everything-4g5h6jkm", Task: "transform-customers[6]", Type: "shell", DeadLetteredAt: after(0), Error: reason},
	}})
	script(f, &v1.ListRunEventsResponse{Items: []*v1.Event{
		{At: after(0), Task: "transform-customers[6]", Event: "dead_lettered", Node: "worker-1", Detail: reason},
	}})
	script(f, &v1.ListNodesResponse{Items: []*v1.Node{
		{Name: "worker-1", State: "draining", Reason: reason, Labels: []string{"server", "fast", "cheap", "near"}, MaxParallel: 8},
	}})
	for args, kept := range map[string]string{"dlq list": "transform-customers[6]", "runs events nightly": "dead_lettered", "nodes list": "worker-1"} {
		command := append(strings.Fields(args), "--gateway", f.url)
		text := onTerminals(t, nil, nil, command...)
		for line := range strings.Lines(text) {
			if ansi.StringWidth(strings.TrimSuffix(line, "\n")) > 72 {
				t.Errorf("%s: %q wraps", args, line)
			}
		}
		if !strings.Contains(text, kept) || !strings.Contains(text, "…") {
			t.Errorf("%s: no %s in\n%s", args, kept, text)
		}
		if got := run(t, command...); !strings.Contains(got.stdout, reason) {
			t.Errorf("%s: cut without a terminal:\n%s", args, got.stdout)
		}
	}
}

// TestEnvironmentLimitsTheTerminal checks that there is no colour if the user wants none, and no escape sequence at all on a
// terminal that knows none.
func TestEnvironmentLimitsTheTerminal(t *testing.T) {
	f := fake(t)
	nightly(f)
	for variable, without := range map[string]string{"NO_COLOR=1": "\x1b[3", "TERM=dumb": "\x1b"} {
		name, value, _ := strings.Cut(variable, "=")
		text := onTerminal(t, map[string]string{name: value}, "runs", "watch", "last", "--gateway", f.url)
		if strings.Contains(text, without) || !strings.Contains(text, "dead_letter") {
			t.Errorf("with %s: %q", variable, text)
		}
	}
}

func TestLogsOnATerminalAreText(t *testing.T) {
	const title, clear = "\x1b]0;mine\x07", "\x1b[2J\x1b[H"
	f := fake(t)
	nightly(f)
	f.messages[len(f.messages)-1].Run.Error = "exit code 1: " + title
	f.logs = []*v1.LogEntry{
		{Task: "fetch", Stream: "stdout", Data: []byte("10%\r20%" + title + clear + "\r\n\x1b[3")},
		{Task: "build", Stream: "stderr", Data: []byte("a\rfetch | b\n" + clear)},
		{Task: "fetch", Stream: "stdout", Data: []byte("1mred\n")},
	}
	all := "fetch | 20%\nbuild | fetch | b\nfetch | \x1b[31mred\x1b[m\nbuild | \n"
	for _, test := range []struct {
		term, want string
		args       []string
	}{
		{"xterm", all, []string{"nightly"}},
		{"dumb", ansi.Strip(all), []string{"nightly"}},
		{"xterm", "10%\n20%\n\x1b[31mred\x1b[m\n", []string{"nightly", "fetch", "--stdout"}},
		{"xterm", "10%\r20%" + title + clear + "\r\n\x1b[31mred\n", []string{"nightly", "fetch", "--stdout", "--raw"}},
	} {
		kept := f.logs
		if len(test.args) > 1 {
			f.logs = []*v1.LogEntry{kept[0], kept[2]}
		}
		got := onTerminals(t, nil, map[string]string{"TERM": test.term}, append([]string{"runs", "logs", "--gateway", f.url}, test.args...)...)
		if f.logs = kept; got != test.want {
			t.Errorf("%s, %v:\n%q, want\n%q", test.term, test.args, got, test.want)
		}
	}
	for _, args := range [][]string{{"runs", "watch", "last"}, {"run", write(t, "f.yaml", hello), "--logs"}} {
		if got := onTerminals(t, nil, nil, append(args, "--gateway", f.url)...); strings.Contains(got, "\x1b]") || strings.Contains(got, "\x1b[2J") {
			t.Errorf("%v lets it through:\n%q", args, got)
		}
	}
	f.fail = connect.NewError(connect.CodeInternal, errors.New("broken"+title))
	if got := onTerminal(t, nil, "runs", "list", "--gateway", f.url); !strings.HasSuffix(got, "broken\n") {
		t.Errorf("an error is shown as %q", got)
	}
}
