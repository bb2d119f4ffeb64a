package podlog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// copyAll feeds a copier with a log in pieces, restarts the log at each cut, and returns the output.
func copyAll(t testing.TB, log []byte, piece int, cuts ...int) string {
	t.Helper()
	var out bytes.Buffer
	c := newCopier(Options{Write: func(p []byte) error { out.Write(p); return nil }, Mark: func(string) {}}, position{})
	for _, cut := range append(cuts, len(log)) {
		c.begin()
		for from := 0; from < cut; from += piece {
			if err := c.add(log[from:min(from+piece, cut)], base); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The output of a copier depends neither on where streams are cut nor on the size of pieces.
func FuzzCopier(f *testing.F) {
	f.Add([]byte("2026-11-26T05:17:09.990000000Z one\n2026-11-26T05:17:09.990000000Z two\n2026-11-26T05:17:08Z \nthree"), uint16(40), uint16(3), uint16(7))
	f.Add([]byte("no time\n2026-11-26T05:17:09+02:00 one\n2026-11-26T05:17:09.99"), uint16(9), uint16(60), uint16(1))
	f.Fuzz(func(t *testing.T, log []byte, first, second, piece uint16) {
		if len(log) > 4<<10 {
			return
		}
		whole := copyAll(t, log, max(1, len(log)))
		if got := copyAll(t, log, 1+int(piece), min(int(first), len(log)), min(int(second), len(log))); got != whole {
			t.Fatalf("%q comes as %q, want %q", log, got, whole)
		}
	})
}

func FuzzPosition(f *testing.F) {
	for _, text := range []string{"", "2026-11-26T05:17:09.99Z 3", "2026-11-26T05:17:09.99Z 3 2026-11-26T05:17:08Z", "yesterday 1", "2026-11-26T05:17:09Z 0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePosition(text)
		if err != nil {
			return
		}
		again, err := parsePosition(p.String())
		if err != nil || !again.time.Equal(p.time) || !again.earliest.Equal(p.earliest) || again.lines != p.lines {
			t.Fatalf("%q is %v, and comes back as %v, %v", text, p, again, err)
		}
	})
}

func TestLogIsReadAgainFromTheEarliestLineOfItsPosition(t *testing.T) {
	at := func(seconds float64) time.Time { return base.Add(time.Duration(seconds * float64(time.Second))) }
	var p position
	for _, test := range []struct {
		time  float64
		want  string
		since float64
	}{
		{0, "2026-11-26T05:17:09.99Z 1", -1.99},
		{0, "2026-11-26T05:17:09.99Z 2", -1.99},
		{5, "2026-11-26T05:17:14.99Z 1", 3.01},
		{4.5, "2026-11-26T05:17:14.99Z 2 2026-11-26T05:17:14.49Z", 3.01},
		{-60, "2026-11-26T05:17:14.99Z 3 2026-11-26T05:16:09.99Z", -61.99},
		{4, "2026-11-26T05:17:14.99Z 4 2026-11-26T05:16:09.99Z", -61.99},
		{6, "2026-11-26T05:17:15.99Z 1", 4.01},
	} {
		p = p.next(at(test.time))
		if got := p.String(); got != test.want || p.since().Sub(at(test.since)).Abs() > time.Second {
			t.Errorf("the position is %q, since %v, want %q", got, p.since(), test.want)
		}
		if p.since().Nanosecond() != 0 || p.since().After(p.earliest.Add(-sinceMargin)) {
			t.Errorf("since is %v", p.since())
		}
	}
}

// There is a mark before a line at most once in 64 KiB or a second.
func TestMarksAreRateLimited(t *testing.T) {
	var marks int
	var written int64
	c := newCopier(Options{
		Write: func(p []byte) error { written += int64(len(p)); return nil },
		Mark:  func(string) { marks++ },
	}, position{})
	c.begin()
	now := base
	for i := range 1000 {
		now = now.Add(time.Millisecond)
		if err := c.add(fmt.Appendf(nil, "2026-11-26T05:17:09.%09dZ %s\n", i, strings.Repeat("x", 1023)), now); err != nil {
			t.Fatal(err)
		}
	}
	if written != 1000<<10 || marks < 10 || marks > 20 {
		t.Errorf("%d marks for %d bytes", marks, written)
	}
}
