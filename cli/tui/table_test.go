package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"switchyard/dev/golden"
	v1 "switchyard/proto/switchyard/v1"
)

// longNames returns the status of a run with names of the maximum length.
func longNames() *Status {
	long := strings.Repeat("compile-everything-", 3) + "now"
	count := int32(3)
	return StatusOf(&v1.Run{Id: "nightly-4g5h6jkm", State: "running", CreatedAt: after(0), Tasks: map[string]*v1.Task{
		long: {State: "running", Node: strings.Repeat("worker-", 8), StartedAt: after(1)},
		"a":  {State: "dead_letter", Node: "worker-1", Attempt: 3, Error: "exit code 2: no such file", StartedAt: after(1), CompletedAt: after(4)},
		"each": {State: "running", Count: &count, Counts: map[string]int32{"queued": 3}, Instances: []*v1.Instance{
			{Index: 0, State: "queued"}, {Index: 1, State: "queued", Error: "0 of 2 nodes have a free GPU: b 0, c 0"},
		}},
	}})
}

func TestHeadingOfFinallyIsWhole(t *testing.T) {
	run := StatusOf(&v1.Run{State: "running", Tasks: map[string]*v1.Task{"a": {State: "pending"}, "b": {State: "pending", Finally: true}}})
	if text := strings.Join(Table(run, begin, 0, Style{}), "\n"); !strings.Contains(text, "\nFINALLY") {
		t.Error(text)
	}
}

// TestTableFitsTheTerminal checks that names and states stay apart at every width, and that the state is always shown.
func TestTableFitsTheTerminal(t *testing.T) {
	b := longNames()
	for _, width := range []int{30, 40, 80, 120} {
		lines := View(b, begin.Add(7*time.Second), width, 24, Style{})
		for _, line := range lines {
			if ansi.StringWidth(line) > width {
				t.Errorf("%d columns: %q has %d", width, line, ansi.StringWidth(line))
			}
		}
		place := strings.Index(lines[1], "STATE")
		for i, state := range []string{"dead_letter", "running", "running"} {
			if line := []rune(lines[2+i]); place < 0 || !strings.HasPrefix(string(line[place:]), state) {
				t.Errorf("%d columns: no %s in its column: %q", width, state, string(line))
			}
		}
	}
	for name, width := range map[string]int{"table-40": 40, "table-80": 80, "table-long": 0} {
		golden.Check(t, "testdata/"+name+".golden", strings.Join(Table(b, begin.Add(7*time.Second), width, Style{}), "\n")+"\n")
	}
}

// TestFanOutSaysWhyItWaits checks that every view shows why a fan-out waits until one of its instances has a node.
func TestFanOutSaysWhyItWaits(t *testing.T) {
	b := longNames()
	const why = "0/3 done: 0 of 2 nodes have a free GPU"
	if text := strings.Join(View(b, begin.Add(7*time.Second), 200, 24, Style{}), "\n"); !strings.Contains(text, why) {
		t.Errorf("not in\n%s", text)
	}
	count := int32(3)
	changes := b.Apply(&v1.WatchRunResponse{Run: &v1.Run{State: "running", Tasks: map[string]*v1.Task{
		"each": {State: "running", Count: &count, Counts: map[string]int32{"queued": 2, "running": 1}, Instances: []*v1.Instance{{Index: 0, State: "running", Node: "b"}}},
	}}})
	if text := strings.Join(View(b, begin.Add(7*time.Second), 200, 24, Style{}), "\n"); strings.Contains(text, "free GPU") || len(changes) == 0 {
		t.Errorf("an instance runs, and it still waits:\n%s", text)
	}
}

// TestNarrowTableShowsTallyAndIndex checks that a narrow table shows the progress of a fan-out and which of its
// instances failed.
func TestNarrowTableShowsTallyAndIndex(t *testing.T) {
	count := int32(60)
	b := StatusOf(&v1.Run{Id: "nightly-4g5h6jkm", State: "running", CreatedAt: after(0), Tasks: map[string]*v1.Task{
		"transform-customers": {
			State: "running", Node: "local", StartedAt: after(1), Count: &count, Counts: map[string]int32{"completed": 7, "dead_letter": 1, "running": 52},
			Instances: []*v1.Instance{{Index: 6, State: "dead_letter", Node: "worker-1", Attempt: 3, Error: "exit code 2: no such file or directory", StartedAt: after(1), CompletedAt: after(4)}},
		},
	}})
	for _, width := range []int{40, 60, 80} {
		text := strings.Join(View(b, begin.Add(7*time.Second), width, 24, Style{}), "\n")
		if !strings.Contains(text, "7/60 done") || !strings.Contains(text, "…[6]") {
			t.Errorf("%d columns:\n%s", width, text)
		}
	}
}
