package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

func TestTable(t *testing.T) {
	b, now := StatusOf(nightly()), begin.Add(7*time.Second)
	golden.Check(t, "testdata/table.golden", joined(Table(b, now, 0, plain)))
	golden.Check(t, "testdata/table-narrow.golden", joined(Table(b, now, 60, plain)))
	golden.Check(t, "testdata/table-color.golden", joined(Table(b, now, 60, Style{Zone: time.UTC, Color: true})))
}

func TestViewFitsTheTerminal(t *testing.T) {
	b, now := StatusOf(nightly()), begin.Add(7*time.Second)
	golden.Check(t, "testdata/view.golden", joined(View(b, now, 80, 24, plain)))
	golden.Check(t, "testdata/view-low.golden", joined(View(b, now, 80, 7, plain)))
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
	golden.Check(t, "testdata/view-wide.golden", joined(View(StatusOf(run), begin.Add(5*time.Second), 80, 16, plain)))
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
	golden.Check(t, "testdata/lines.golden", joined(text))
}

func TestSummary(t *testing.T) {
	run := nightly()
	open := Summary(StatusOf(run), begin.Add(65*time.Second), plain)
	run = nightly()
	run.State, run.CompletedAt = "failed", after(12)
	golden.Check(t, "testdata/summary.golden", joined([]string{open, Summary(StatusOf(run), begin.Add(time.Hour), plain)}))
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
	golden.Check(t, "testdata/failures.golden", joined(Failures(StatusOf(run), plain, func(task string) string { return "see " + task })))
}
