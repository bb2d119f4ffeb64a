package tui

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/drawing/graph"
	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// TestTaskThatIsAwayIsNotShownAsFailed checks that a virtual machine whose node is silent is shown as alive.
func TestTaskThatIsAwayIsNotShownAsFailed(t *testing.T) {
	now := after(60).AsTime()
	task := &v1.Task{
		Type: v1.TypeVPS, State: v1.TaskLost, Reason: v1.ReasonNodeLost, Notice: "its node is silent", Error: "its node is silent", Node: "n",
		AssignedAt: after(0), StartedAt: after(0), CompletedAt: after(10),
	}
	run := &v1.Run{Id: "box-0k", State: v1.RunRunning, CreatedAt: after(0), Tasks: map[string]*v1.Task{"box": task}}
	if failures := Failures(StatusOf(run), plain, func(string) string { return "" }); len(failures) > 0 {
		t.Errorf("failures: %q", failures)
	}
	colour := Style{Color: true}
	drawn, _ := Graph(graph.NodesOf(run, now), true, colour)
	if text := joined(drawn); !strings.Contains(text, "\x1b["+yellow+"m") || strings.Contains(text, "\x1b["+red+"m") || !strings.Contains(text, "on n: its node is silent") {
		t.Errorf("graph: %q", text)
	}
	if text := joined(Table(StatusOf(run), now, 0, colour)); !strings.Contains(text, "\x1b["+yellow+"mlost") || !strings.Contains(text, "1m00s") {
		t.Errorf("table: %q", text)
	}
	if bar := timeline.BarOf("box", task, begin, now); len(bar.Spans) != 1 || bar.Spans[0].Failed || !bar.Spans[0].To.Equal(now) {
		t.Errorf("bar: %+v", bar)
	}
	fanned := &v1.Task{Type: v1.TypeVPS, State: v1.TaskRunning, Count: proto.Int32(3), Counts: map[string]int32{v1.TaskLost: 1, v1.TaskFailed: 1}}
	if got := words.Tally(fanned); got != "0/3 done, 1 lost, 1 failed" {
		t.Errorf("tally: %s", got)
	}
	task.Notice = ""
	if failures := Failures(StatusOf(run), plain, func(string) string { return "" }); len(failures) != 1 {
		t.Errorf("once it has ended, failures: %q", failures)
	}
}
