package executortest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
)

func (h InsideHarness) execPipes(t *testing.T) {
	in := h.Enter(t)
	var out, errs buffer
	c := shell("cat; echo problem >&2")
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader("first\nsecond"), &out, &errs
	if status := exec(t, in, c); status != (executor.ExitStatus{}) {
		t.Errorf("%+v", status)
	}
	if out.String() != "first\nsecond" || errs.String() != "problem\n" {
		t.Errorf("stdout %q, stderr %q", out.String(), errs.String())
	}
	if got := prints(t, in, shell("cat; echo end")); got != "end\n" {
		t.Errorf("without standard input a program reads %q", got)
	}
	if status := exec(t, in, shell("echo thrown away; exit 3")); status.Code != 3 {
		t.Errorf("%+v without streams", status)
	}
}

func (h InsideHarness) execEnvironment(t *testing.T) {
	in := h.Enter(t)
	dir := h.Dir(t)
	c := shell(fmt.Sprintf(`printf '%%s,%%s,%%s' "$%s" "$ADDED" "$(pwd)"`, h.Env[0]))
	c.Env, c.Dir = map[string]string{"ADDED": "two words"}, dir
	if got, want := prints(t, in, c), h.Env[1]+",two words,"+dir; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c = shell(fmt.Sprintf(`printf %%s "$%s"`, h.Env[0]))
	c.Env = map[string]string{h.Env[0]: "another"}
	if got := prints(t, in, c); got != "another" {
		t.Errorf("a variable of the command is %q, want another", got)
	}
}

func (h InsideHarness) execEnds(t *testing.T) {
	in := h.Enter(t)
	for script, want := range map[string]executor.ExitStatus{
		"exit 0": {}, "exit 7": {Code: 7}, "exit 255": {Code: 255},
		"kill -TERM $$": {Code: 143, Signal: "TERM"}, "kill -KILL $$": {Code: 137, Signal: "KILL"},
	} {
		got := exec(t, in, shell(script))
		if got.Signal == "" {
			want.Signal = "" // container engines do not report the signal
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", script, got, want)
		}
	}
}

func (h InsideHarness) execCannotStart(t *testing.T) {
	in := h.Enter(t)
	for name, one := range map[string]struct {
		c    executor.Command
		code int
	}{
		"no such program": {executor.Command{Args: []string{"switchyard-no-such-program"}}, 127},
		"not executable":  {executor.Command{Args: []string{"/etc/passwd"}}, 126},
	} {
		status, err := in.Exec(t.Context(), one.c)
		if start := executor.AsStartError(err); start != nil {
			status.Code = start.ExitCode
		} else if _, refused := errors.AsType[*executor.Refusal](err); err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
		if status.Code != one.code {
			t.Errorf("%s: exit code %d, want %d", name, status.Code, one.code)
		}
	}
	c := shell("true")
	c.Dir = path.Join(h.Dir(t), "no such directory")
	if status, err := in.Exec(t.Context(), c); err == nil && status.Code == 0 {
		t.Error("a program runs in a directory that is not there")
	}
}

func (h InsideHarness) execSignals(t *testing.T) {
	in := h.Enter(t)
	b := begin(t, t.Context(), in, shell(`trap 'echo interrupted' INT; trap 'echo terminated; exit 9' TERM; echo ready; while :; do sleep 0.05; done`), nil)
	b.out.await(t, "ready")
	b.signals <- "INT"
	b.out.await(t, "interrupted")
	b.signals <- "SIGTERM"
	if status := b.awaitExit(t); status.Code != 9 || !strings.Contains(b.out.String(), "terminated\n") {
		t.Errorf("%+v, printed %q", status, b.out.String())
	}
}

func (h InsideHarness) execBinary(t *testing.T) {
	in := h.Enter(t)
	size := h.LargeOutput
	if size == 0 {
		size = 2 << 20
	}
	// Send every byte value through the program and back.
	random := io.LimitReader(rand.NewChaCha8([32]byte{1}), size)
	sent, received := sha256.New(), sha256.New()
	c := executor.Command{Args: []string{"cat"}, Stdin: io.TeeReader(random, sent), Stdout: received}
	if status := exec(t, in, c); status.Code != 0 {
		t.Errorf("%+v", status)
	}
	if a, b := hex.EncodeToString(sent.Sum(nil)), hex.EncodeToString(received.Sum(nil)); a != b {
		t.Errorf("%d bytes were sent with the hash %s, and received with %s", size, a, b)
	}
	var out buffer
	c = shell(fmt.Sprintf("head -c %d /dev/zero", size))
	c.Stdout = &out
	exec(t, in, c)
	if got := int64(len(out.String())); got != size {
		t.Errorf("%d bytes of output, want %d", got, size)
	}
}

// execBackground checks that Exec returns although the program left a background process behind.
func (h InsideHarness) execBackground(t *testing.T) {
	in := h.Enter(t)
	var out buffer
	c := shell("sleep 100000 & echo started $!; exit 4")
	c.Stdout, c.Stderr = &out, &out
	status := exec(t, in, c)
	var left int
	if _, err := fmt.Sscanf(out.String(), "started %d\n", &left); err != nil || status.Code != 4 {
		t.Fatalf("%+v, printed %q", status, out.String())
	}
	// On a whole machine, the background process may outlive the test.
	prints(t, in, shell(fmt.Sprintf("kill %d 2>/dev/null || true", left)))
}

// execSilentStdin checks that Exec returns although standard input neither ends nor delivers anything.
func (h InsideHarness) execSilentStdin(t *testing.T) {
	in := h.Enter(t)
	read, write := io.Pipe()
	defer write.Close()
	c := shell("exit 5")
	c.Stdin = read
	if status := exec(t, in, c); status.Code != 5 {
		t.Errorf("%+v", status)
	}
}

// execContext checks that a program is sent SIGHUP when its caller leaves, and is killed if it ignores SIGHUP.
func (h InsideHarness) execContext(t *testing.T) {
	in := h.Enter(t)
	dir := h.Dir(t)
	for name, script := range map[string]string{
		"obeys":   `trap 'echo bye >"$MARK"; exit 0' HUP; echo ready; while :; do sleep 0.05; done`,
		"ignores": `trap '' HUP INT TERM; echo ready; while :; do sleep 0.05; done`,
	} {
		// On a busy machine, the program may be killed before it has obeyed.
		for wait := time.Second; ; wait *= 2 {
			mark := path.Join(dir, fmt.Sprintf("hup-%d", serial.Add(1)))
			hangUp(t, in, script, mark)
			if name == "ignores" || soonPrints(t, in, executor.Command{Args: []string{"cat", mark}}, "bye\n", wait) {
				break
			}
			if wait > time.Minute {
				t.Fatal("the program has not been sent SIGHUP")
			}
		}
	}
}

// hangUp runs a script, with a variable MARK, until it prints ready. Then it cancels the call and waits for the end of the call.
func hangUp(t *testing.T, in executor.Inside, script, mark string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := shell(script)
	c.Env = map[string]string{"MARK": mark}
	b := begin(t, ctx, in, c, nil)
	b.out.await(t, "ready")
	cancel()
	b.wait(t)
}

// soonPrints waits for some time until a command prints a text, and reports whether it does.
func soonPrints(t *testing.T, in executor.Inside, c executor.Command, want string, wait time.Duration) bool {
	t.Helper()
	for until := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		var out buffer
		c.Stdout = &out
		_ = exec(t, in, c)
		if out.String() == want {
			return true
		}
		if time.Now().After(until) {
			return false
		}
	}
}

func (h InsideHarness) execShell(t *testing.T) {
	in := h.Enter(t)
	if got := prints(t, in, executor.Command{Line: "x=1; echo $((x + 1))"}); got != "2\n" {
		t.Errorf("a line prints %q", got)
	}
	if got := prints(t, in, executor.Command{Stdin: strings.NewReader("echo from stdin\n")}); !strings.HasSuffix(got, "from stdin\n") {
		t.Errorf("the shell prints %q", got)
	}
}

func (h InsideHarness) terminalSize(t *testing.T) {
	in := h.Enter(t)
	c := shell(`stty -echo; test -t 0 && test -t 1 && test -t 2 && stty size; echo $TERM; while read line; do stty size; done`)
	b := begin(t, t.Context(), in, c, &executor.WindowSize{Columns: 132, Rows: 43})
	b.out.await(t, "43 132\r\nxterm-256color\r\n")
	b.resizes <- executor.WindowSize{Columns: 90, Rows: 20}
	// The line may arrive before the new size, so try again.
	for until := time.Now().Add(patience); !strings.Contains(b.out.String(), "20 90\r\n"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the terminal has not been resized: %q", b.out.String())
		}
		b.typeText(t, "\n")
	}
	b.typeText(t, "\x04")
	if status := b.awaitExit(t); status.Code != 0 {
		t.Errorf("%+v, printed %q", status, b.out.String())
	}
	// A size of 0x0 is replaced by the default size.
	c = shell("stty size; echo $TERM")
	c.Env = map[string]string{"TERM": "vt100"} // chosen by the caller
	b = begin(t, t.Context(), in, c, &executor.WindowSize{})
	b.awaitExit(t)
	if got := b.out.String(); got != "24 80\r\nvt100\r\n" {
		t.Errorf("a terminal of 0x0, of the type of its environment, prints %q", got)
	}
}

func (h InsideHarness) terminalInput(t *testing.T) {
	b := begin(t, t.Context(), h.Enter(t), shell(`read line; echo "got $line"; exit 6`), &executor.WindowSize{Columns: 80, Rows: 24})
	b.typeText(t, "hello\r")
	if status := b.awaitExit(t); status.Code != 6 || b.out.String() != "hello\r\ngot hello\r\n" {
		t.Errorf("%+v, printed %q", status, b.out.String())
	}
}

func (h InsideHarness) terminalInterrupt(t *testing.T) {
	b := begin(t, t.Context(), h.Enter(t), shell(`trap 'echo interrupted; exit 8' INT; echo ready; while :; do sleep 0.05; done`), &executor.WindowSize{Columns: 80, Rows: 24})
	b.out.await(t, "ready")
	b.typeText(t, "\x03")
	if status := b.awaitExit(t); status.Code != 8 || !strings.HasSuffix(b.out.String(), "interrupted\r\n") {
		t.Errorf("%+v, printed %q", status, b.out.String())
	}
}

// terminalEnd checks that the end of standard input reaches a program with a terminal.
func (h InsideHarness) terminalEnd(t *testing.T) {
	b := begin(t, t.Context(), h.Enter(t), shell(`echo ready; cat; echo over`), &executor.WindowSize{Columns: 80, Rows: 24})
	b.out.await(t, "ready")
	if err := b.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if status := b.awaitExit(t); status.Code != 0 || !strings.HasSuffix(b.out.String(), "over\r\n") {
		t.Errorf("%+v, printed %q", status, b.out.String())
	}
}

// terminalLarge checks that the last output of a program arrives, although its terminal closes when it exits.
func (h InsideHarness) terminalLarge(t *testing.T) {
	in := h.Enter(t)
	for range 5 {
		b := begin(t, t.Context(), in, shell(`stty -opost; head -c 300000 /dev/zero; printf end`), &executor.WindowSize{Columns: 80, Rows: 24})
		b.awaitExit(t)
		if got := b.out.String(); len(got) != 300_003 || !strings.HasSuffix(got, "end") {
			t.Errorf("%d bytes arrive that end in %q", len(got), got[max(0, len(got)-10):])
		}
	}
}

// ended reports whether an error results from the end of a context.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// names returns the keys of a map in ascending order.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
