package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	v1 "switchyard/proto/switchyard/v1"
)

func TestTable(t *testing.T) {
	b, now := StatusOf(nightly()), begin.Add(7*time.Second)
	golden(t, "table", joined(Table(b, now, 0, plain)))
	golden(t, "table-narrow", joined(Table(b, now, 60, plain)))
	golden(t, "table-color", joined(Table(b, now, 60, Style{Zone: time.UTC, Color: true})))
}

func TestViewFitsTheTerminal(t *testing.T) {
	b, now := StatusOf(nightly()), begin.Add(7*time.Second)
	golden(t, "view", joined(View(b, now, 80, 24, plain)))
	golden(t, "view-low", joined(View(b, now, 80, 7, plain)))
	for height := range 30 {
		for _, width := range []int{1, 10, 40, 200} {
			lines := View(b, now, width, height, Style{Color: true})
			if len(lines) > max(height-1, 4) {
				t.Errorf("%d lines for a height of %d", len(lines), height)
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > width {
					t.Errorf("%q is wider than %d", line, width)
				}
			}
		}
	}
}

func TestViewOfManyTasks(t *testing.T) {
	run := &v1.Run{Id: "wide-1", State: "running", CreatedAt: after(0), Tasks: map[string]*v1.Task{}}
	for i := range 5000 {
		task := &v1.Task{State: "completed", Node: "local"}
		switch {
		case i == 4321:
			task = &v1.Task{State: "dead_letter", Node: "local", Error: "exit code 7"}
		case i >= 4990:
			task = &v1.Task{State: "running", Node: "local", StartedAt: after(1)}
		case i >= 2500:
			task = &v1.Task{State: "pending"}
		}
		run.Tasks[fmt.Sprintf("item-%04d", i)] = task
	}
	golden(t, "view-wide", joined(View(StatusOf(run), begin.Add(5*time.Second), 80, 16, plain)))
}

func TestLines(t *testing.T) {
	l := Lines{Style: plain}
	b := NewStatus("nightly-4g5h6jkm")
	changes := b.Apply(&v1.WatchRunResponse{Run: nightly(), TaskCount: 9})
	l.Widen(b)
	var text []string
	for _, c := range changes {
		text = append(text, l.Line(c, begin.Add(7*time.Second)))
	}
	golden(t, "lines", joined(text))
}

func TestSummary(t *testing.T) {
	run := nightly()
	open := Summary(StatusOf(run), begin.Add(65*time.Second), plain)
	run = nightly()
	run.State, run.CompletedAt = "failed", after(12)
	golden(t, "summary", joined([]string{open, Summary(StatusOf(run), begin.Add(time.Hour), plain)}))
}

func TestFailures(t *testing.T) {
	run := nightly()
	var long strings.Builder
	for i := range 30 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	run.Tasks["test"] = &v1.Task{
		State: "dead_letter", Node: "local-2", Attempt: 3, Error: "exit code 1", DependsOn: []string{"fetch"},
		Result: &v1.TaskResult{ExitCode: 1, Stdout: long.String() + strings.Repeat("x", 600)},
	}
	run.Tasks["short"] = &v1.Task{State: "failed", Node: "local-2", Error: "exit code 1: no", Result: &v1.TaskResult{ExitCode: 1, Stderr: "no\n"}}
	run.Tasks["unplaced"] = &v1.Task{State: "failed", Reason: "placement_timeout"}
	for i := range 20 {
		run.Tasks[fmt.Sprintf("x%02d", i)] = &v1.Task{State: "lost", Reason: "node_lost", DependsOn: []string{"build"}}
	}
	golden(t, "failures", joined(Failures(StatusOf(run), plain, func(task string) string { return "see " + task })))
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 440 * time.Millisecond: "0.4s", 9949 * time.Millisecond: "9.9s",
		9960 * time.Millisecond: "9s", 59999 * time.Millisecond: "59s", 185 * time.Second: "3m05s",
		time.Hour - 1: "59m59s", 127 * time.Minute: "2h07m", 50 * time.Hour: "50h00m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"as it is":                 "as it is",
		"10%\r50%\r100%":           "100%",
		"\x1b[1;31mred\x1b[0m\r\n": "red",
		"bell\a and\ttab\x00":      "bell and\ttab",
		"\x1b]0;title\aafter":      "after",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q looks like %q, want %q", in, got, want)
		}
	}
}

func FuzzOneLine(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\x1b[2J", "\x1b", "\u009b31m", "x\x7f", "\xff\xfe", "日本\u2028語"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range []string{OneLine(text), Plain(text)} {
			for _, r := range line {
				if unicode.IsControl(r) && r != '\t' {
					t.Fatalf("%q still has %q in %q", text, r, line)
				}
			}
		}
	})
}

func TestShorten(t *testing.T) {
	for _, test := range []struct {
		name  string
		width int
		want  string
	}{
		{"transform-customers[6]", 0, "transform-customers[6]"},
		{"transform-customers[6]", 22, "transform-customers[6]"},
		{"transform-customers[6]", 14, "transform-…[6]"},
		{"each[1234567]", 12, "ea…[1234567]"},
		{"each[1234567]", 10, "each[1234…"},
		{"compile-everything-now", 11, "compi…g-now"},
		{"größe-überall", 7, "grö…all"},
		{"abc", 1, "…"},
	} {
		if got := Shorten(test.name, test.width); got != test.want {
			t.Errorf("%q at %d: %q, want %q", test.name, test.width, got, test.want)
		}
	}
}
