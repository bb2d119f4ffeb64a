package tui

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// terminal interprets the few sequences that a Screen writes and holds what people see, including lines that scrolled
// out.
type terminal struct {
	width    int
	lines    []string
	row, col int
}

var sequence = regexp.MustCompile(`^\x1b\[(\d*)([A-Za-z])`)

func (v *terminal) Write(p []byte) (int, error) {
	for text := string(p); text != ""; {
		for len(v.lines) <= v.row {
			v.lines = append(v.lines, "")
		}
		if m := sequence.FindStringSubmatch(text); m != nil {
			n := 1
			if m[1] != "" {
				n, _ = strconv.Atoi(m[1])
			}
			line := v.lines[v.row]
			switch m[2] {
			case "A":
				v.row = max(0, v.row-n)
			case "K":
				v.lines[v.row] = line[:min(v.col, len(line))]
			case "J":
				v.lines[v.row] = line[:min(v.col, len(line))]
				v.lines = v.lines[:v.row+1]
			default:
				return 0, fmt.Errorf("a sequence that is not known: %q", m[0])
			}
			text = text[len(m[0]):]
			continue
		}
		switch c := text[0]; {
		case c == '\r':
			v.col = 0
		case c == '\n':
			v.row, v.col = v.row+1, 0
		default:
			if v.col == v.width {
				v.row, v.col = v.row+1, 0
				continue
			}
			line := v.lines[v.row]
			line += strings.Repeat(" ", max(0, v.col-len(line)))
			v.lines[v.row] = line[:v.col] + string(c) + line[min(v.col+1, len(line)):]
			v.col++
		}
		text = text[1:]
	}
	return len(p), nil
}

func (v *terminal) String() string {
	return strings.TrimRight(strings.Join(v.lines, "\n"), "\n")
}

func newTestScreen(width int) (*Screen, *terminal) {
	v := &terminal{width: width}
	return NewScreen(v, func() (int, int) { return v.width, 10 }), v
}

func (v *terminal) shows(t *testing.T, want ...string) {
	t.Helper()
	if got := v.String(); got != strings.Join(want, "\n") {
		t.Fatalf("the terminal shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestScreenKeepsThePictureBelowTheText(t *testing.T) {
	s, v := newTestScreen(40)
	say := func(text string) {
		t.Helper()
		_, err := io.WriteString(s, text)
		must(t, err)
	}
	say("before\n")
	must(t, s.Draw([]string{"title", "a running"}))
	v.shows(t, "before", "title", "a running")
	say("log 1\nlog ")
	v.shows(t, "before", "log 1", "title", "a running")
	must(t, s.Draw([]string{"title", "a done", "b running"}))
	v.shows(t, "before", "log 1", "title", "a done", "b running")
	say("2\n")
	v.shows(t, "before", "log 1", "log 2", "title", "a done", "b running")
	must(t, s.Draw([]string{"end"}))
	v.shows(t, "before", "log 1", "log 2", "end")
	say("unfinished")
	must(t, s.Release())
	v.shows(t, "before", "log 1", "log 2", "end", "unfinished")
	say("after\n")
	v.shows(t, "before", "log 1", "log 2", "end", "unfinished", "after")
}

func TestScreenBreaksEndlessLines(t *testing.T) {
	s, v := newTestScreen(maxPartial * 2)
	must(t, s.Draw([]string{"picture"}))
	_, err := io.WriteString(s, strings.Repeat("x", maxPartial))
	must(t, err)
	v.shows(t, strings.Repeat("x", maxPartial), "picture")
}

func TestScreenOnATerminalThatBecameNarrower(t *testing.T) {
	s, v := newTestScreen(20)
	must(t, s.Draw([]string{"0123456789abcdef", "short"}))
	v.width = 10
	// As on a real terminal, the first line now takes two rows.
	v.lines, v.row = []string{"0123456789", "abcdef", "short", ""}, 3
	must(t, s.Draw([]string{"new"}))
	v.shows(t, "new")
}

func TestScreenWithoutAPictureIsAPlainWriter(t *testing.T) {
	var out strings.Builder
	s := NewScreen(&out, func() (int, int) { t.Error("the size was asked for"); return 0, 0 })
	_, err := io.WriteString(s, "half a ")
	must(t, err)
	if out.String() != "half a " {
		t.Errorf("%q", out.String())
	}
}
