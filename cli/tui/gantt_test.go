package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"switchyard/dev/golden"
	"switchyard/drawing/timeline"
	v1 "switchyard/proto/switchyard/v1"
)

// chart draws the timeline of a run as the command does, without instances.
func chart(run *v1.Run, now time.Time, width, most int, style Style) []string {
	scale := timeline.Scale{From: run.GetCreatedAt().AsTime(), To: now, Cells: LaneWidth(width)}
	var rows []Row
	for name, t := range run.GetTasks() {
		if bar := timeline.BarOf(name, t, timeline.ReadyAt(run, t), now); len(bar.Spans) > 0 {
			lane := timeline.NewLane(scale)
			lane.Add(bar)
			rows = append(rows, Row{Name: name, Node: bar.Node, State: bar.State, Lane: lane})
		}
	}
	return Gantt(rows, scale, most, style)
}

func TestGantt(t *testing.T) {
	run := nightly()
	run.Tasks["build"].Attempts = []*v1.Attempt{{Node: "local-1", State: "failed", AssignedAt: after(2.6), StartedAt: after(2.7), CompletedAt: after(3.2)}}
	run.Tasks["flaky"].Attempts = []*v1.Attempt{{Node: "local-2", State: "failed", AssignedAt: after(2.6), CompletedAt: after(3.2)}}
	run.Tasks["a-name-that-is-longer-than-the-column"] = &v1.Task{State: "completed", Node: "local-1", AssignedAt: after(1), StartedAt: after(1), CompletedAt: after(1)}
	now := begin.Add(7 * time.Second)
	golden.Check(t, "testdata/gantt.golden", joined(chart(run, now, 100, 0, plain)))
	golden.Check(t, "testdata/gantt-color.golden", joined(chart(run, now, 80, 0, Style{Color: true})))
}

func TestGanttOfOddShapes(t *testing.T) {
	for name, nodes := range odd() {
		t.Run(name, func(t *testing.T) {
			run := &v1.Run{CreatedAt: after(0), Tasks: map[string]*v1.Task{}}
			for i, n := range nodes {
				from := float64(i) / 100
				run.Tasks[n.Name] = &v1.Task{
					State: "completed", Node: fmt.Sprintf("n%d", i%5), DependsOn: n.After,
					AssignedAt: after(from), StartedAt: after(from + 0.01), CompletedAt: after(from + 0.05 + float64(i%7)/10),
				}
			}
			now := begin.Add(time.Duration(len(nodes)) * 10 * time.Millisecond)
			lines := chart(run, now, 120, 200, plain)
			if len(lines) > 200+2+5+1 {
				t.Errorf("%d lines", len(lines))
			}
			if all := chart(run, now, 120, 0, plain); len(all) != len(nodes)+2+5 {
				t.Errorf("all of it is %d lines, want one for each of %d tasks", len(all), len(nodes))
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > 120 {
					t.Errorf("%q is wider than the chart", line)
				}
			}
		})
	}
}

// TestBarsAreOrderedForAnyTimes checks that spans are ordered and lanes keep their width for any times, even nonsense.
func TestBarsAreOrderedForAnyTimes(t *testing.T) {
	states := []string{"pending", "queued", "assigned", "running", "paused", "completed", "failed", "skipped", "cancelled"}
	rapid.Check(t, func(t *rapid.T) {
		now := begin.Add(100 * time.Second)
		at := func(what string) *v1.Attempt {
			a := &v1.Attempt{Node: "n", State: "failed", CompletedAt: after(rapid.Float64Range(-10, 120).Draw(t, what+" ended"))}
			if rapid.Bool().Draw(t, what+" was assigned") {
				a.AssignedAt = after(rapid.Float64Range(-10, 120).Draw(t, what+" assigned"))
			}
			if rapid.Bool().Draw(t, what+" was started") {
				a.StartedAt = after(rapid.Float64Range(-10, 120).Draw(t, what+" started"))
			}
			return a
		}
		newest := at("newest")
		task := &v1.Task{
			State: rapid.SampledFrom(states).Draw(t, "state"), Node: "n", AssignedAt: newest.AssignedAt, StartedAt: newest.StartedAt, CompletedAt: newest.CompletedAt,
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "attempts") {
			task.Attempts = append(task.Attempts, at(fmt.Sprint("attempt ", i)))
		}
		bar := timeline.BarOf("t", task, begin, now)
		for _, s := range bar.Spans {
			if s.To.Before(s.From) {
				t.Fatalf("%+v ends before it begins", s)
			}
		}
		cells := rapid.IntRange(1, 50).Draw(t, "cells")
		lane := timeline.NewLane(timeline.Scale{From: begin, To: now, Cells: cells})
		for range rapid.IntRange(1, 3).Draw(t, "bars") {
			lane.Add(bar)
		}
		text := drawLane(lane, plain)
		if ansi.StringWidth(text) != cells {
			t.Fatalf("%q has not %d cells", text, cells)
		}
		drawn := strings.ContainsAny(text, "█▒░·")
		if drawn != (len(bar.Spans) > 0) {
			t.Fatalf("%+v is drawn as %q", bar.Spans, text)
		}
	})
}

// TestLaneIsTheUnionOfItsBars checks that each cell of a lane shows what any of its bars does there.
func TestLaneIsTheUnionOfItsBars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 20
		scale := timeline.Scale{From: begin, To: begin.Add(cells * time.Second), Cells: cells}
		whole := timeline.NewLane(scale)
		var single [][]rune
		for range rapid.IntRange(1, 8).Draw(t, "bars") {
			from := rapid.IntRange(0, cells-1).Draw(t, "from")
			kind := rapid.SampledFrom(timeline.Kinds()).Draw(t, "kind")
			bar := timeline.Bar{Spans: []timeline.Span{{Kind: kind, From: begin.Add(time.Duration(from) * time.Second), To: begin.Add(time.Duration(from+rapid.IntRange(1, 9).Draw(t, "long")) * time.Second)}}}
			whole.Add(bar)
			one := timeline.NewLane(scale)
			one.Add(bar)
			single = append(single, []rune(drawLane(one, plain)))
		}
		for i, mark := range []rune(drawLane(whole, plain)) {
			want := ' '
			for _, strongest := range "·░█" {
				if slices.ContainsFunc(single, func(text []rune) bool { return text[i] == strongest }) {
					want = strongest
				}
			}
			if mark != want {
				t.Fatalf("cell %d is %q, want %q", i, mark, want)
			}
		}
	})
}
