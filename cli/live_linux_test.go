package cli

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal of 24 lines of 72 cells. keyboard is its other end.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no terminals: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	must(t, unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 72}))
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	return keyboard, terminal
}

// onTerminal runs a command whose standard error is a terminal and returns what
// was written there.
func onTerminal(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	keyboard, terminal := openTerminal(t)
	stdout, err := os.Create(t.TempDir() + "/stdout")
	must(t, err)
	defer stdout.Close()
	seen := make(chan string)
	go func() {
		var text strings.Builder
		buffer := make([]byte, 4096)
		for {
			n, err := keyboard.Read(buffer)
			text.Write(buffer[:n])
			if err != nil { // the other end is closed
				seen <- text.String()
				return
			}
		}
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
	// The last picture stays, with what comes after the end below it.
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

func TestNoColor(t *testing.T) {
	f := fake(t)
	nightly(f)
	text := onTerminal(t, map[string]string{"NO_COLOR": "1"}, "runs", "watch", "last", "--gateway", f.url)
	if strings.Contains(text, "m") && strings.Contains(text, "\x1b[3") {
		t.Errorf("there is colour:\n%q", text)
	}
}

func TestDumbTerminalGetsLines(t *testing.T) {
	f := fake(t)
	nightly(f)
	text := onTerminal(t, map[string]string{"TERM": "dumb"}, "runs", "watch", "last", "--gateway", f.url)
	if strings.Contains(text, "\x1b") || !strings.Contains(text, "build   dead_letter") {
		t.Errorf("%q", text)
	}
}
