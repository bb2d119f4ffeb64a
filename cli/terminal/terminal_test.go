package terminal

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

func TestEscapes(t *testing.T) {
	for _, test := range []struct {
		typed, sent string
		leaves      bool
		helps       int
	}{
		{"ls\r", "ls\r", false, 0},
		{"~.", "", true, 0},
		{"ls\r~.rest", "ls\r", true, 0},
		{"ls\n~.", "ls\n", true, 0},
		{"ls ~.", "ls ~.", false, 0},
		{"~~.", "~.", false, 0},
		{"\r~~~.", "\r~~.", false, 0},
		{"~?", "", false, 1},
		{"~?~.", "", true, 1},
		{"\r~/bin\r", "\r~/bin\r", false, 0},
		{"a~\r~.", "a~\r", true, 0},
		{"~\r~.", "~\r", true, 0},
		{"x\x03~.", "x\x03~.", false, 0},
	} {
		// The result must not depend on how the input is split.
		for size := 1; size <= len(test.typed); size++ {
			var e escapes
			var sent []byte
			var all found
			for rest := test.typed; rest != "" && !all.leave; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				var f found
				sent, f = e.scan(sent, []byte(piece))
				all.leave, all.help = f.leave, all.help+f.help
			}
			if string(sent) != test.sent || all.leave != test.leaves || all.help != test.helps {
				t.Errorf("%q in pieces of %d sends %q, %+v", test.typed, size, sent, all)
			}
		}
	}
}

func TestInputLeavesWhileNothingReads(t *testing.T) {
	r, w := io.Pipe()
	left := make(chan struct{})
	in := NewInput(r, func() { close(left) }, func() {})
	_, err := io.WriteString(w, strings.Repeat("a line\r", 1000))
	if err == nil {
		_, err = io.WriteString(w, "~.")
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Fatal("~. has no effect")
	}
	all, err := io.ReadAll(in)
	if err != nil || len(all) != 7000 {
		t.Errorf("%d bytes, %v", len(all), err)
	}
}

func TestLargeInputIsComplete(t *testing.T) {
	r, w := io.Pipe()
	in := NewInput(r, nil, nil)
	const size = 3 * maxTyped
	go func() {
		_, err := io.Copy(w, io.LimitReader(repeated('x'), size))
		_ = w.CloseWithError(errors.Join(err, io.EOF))
	}()
	n, err := io.Copy(io.Discard, in)
	if n != size || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type repeated byte

func (b repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

func TestRestoreEndsRawMode(t *testing.T) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer ptmx.Close()
	defer tty.Close()
	if !IsTerminal(tty) || IsTerminal(strings.NewReader("")) {
		t.Fatal("a terminal is not told from other streams")
	}
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := MakeRaw(tty)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := term.GetState(int(tty.Fd())); err != nil || *now == *before {
		t.Errorf("the terminal is not raw: %v", err)
	}
	raw.Restore()
	raw.Restore()
	if now, err := term.GetState(int(tty.Fd())); err != nil || *now != *before {
		t.Errorf("the terminal is not as before: %v", err)
	}
	var none *Raw
	none.Restore()
}

func TestSizeOfATerminalWithoutOne(t *testing.T) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer ptmx.Close()
	defer tty.Close()
	if got := SizeOf(tty); got != fallbackSize {
		t.Errorf("0x0 gives %v", got)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 50, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	if got := SizeOf(tty); got != (Size{120, 50}) {
		t.Errorf("%v", got)
	}
	// A change before the call counts too.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if got := <-Resizes(ctx, tty, fallbackSize); got != (Size{120, 50}) {
		t.Errorf("%v", got)
	}
}
