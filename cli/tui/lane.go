package tui

import (
	"strings"
	"time"
)

// Scale puts a stretch of time into cells.
type Scale struct {
	From, To time.Time
	Cells    int
}

// cell is where a time lies.
func (s Scale) cell(at time.Time) int {
	whole := s.To.Sub(s.From)
	if whole <= 0 {
		return 0
	}
	n := int(float64(at.Sub(s.From)) / float64(whole) * float64(s.Cells))
	return min(max(n, 0), s.Cells-1)
}

// Lane is a line of a chart. It takes any number of bars, each in constant time,
// so that one lane can show a hundred thousand instances.
type Lane struct {
	scale Scale
	// changes, for each of marks, of how many spans cover a cell, at each cell: a
	// running sum gives the number.
	changes [len(marks)][]int
	Bars    int
	// Sums of the spans of the bars, and when the first began and the last ended.
	Took     map[string]time.Duration
	From, To time.Time
}

// NewLane returns an empty lane.
func NewLane(scale Scale) *Lane {
	return &Lane{scale: scale, Took: map[string]time.Duration{}}
}

// Add adds a bar.
func (l *Lane) Add(b Bar) {
	l.Bars++
	for _, s := range b.Spans {
		l.Took[s.Kind] += s.To.Sub(s.From)
		if l.From.IsZero() || s.From.Before(l.From) {
			l.From = s.From
		}
		if s.To.After(l.To) {
			l.To = s.To
		}
		mark := markOf(s)
		if l.changes[mark] == nil {
			l.changes[mark] = make([]int, l.scale.Cells+1)
		}
		first, last := l.scale.cell(s.From), l.scale.cell(s.To)
		// A span ends where the next begins, so that its last cell is not its own.
		if last > first && s.Kind != Run {
			last--
		}
		l.changes[mark][first]++
		l.changes[mark][last+1]--
	}
}

// marks are what cells look like; those that hide others come first.
var marks = [...]struct {
	kind               string
	failed             bool
	mark, color, words string
}{
	{Run, false, "█", green, "runs"},
	{Run, true, "▒", red, "failed attempt"},
	{Wait, false, "░", yellow, "waits on its node"},
	{Queue, false, "·", faint, "queued"},
}

// markOf is which of marks a span has.
func markOf(s Span) int {
	for i, m := range marks {
		if m.kind == s.Kind && m.failed == s.Failed {
			return i
		}
	}
	return len(marks) - 1
}

// draw is the lane as text of as many cells.
func (l *Lane) draw(style Style) string {
	var text, same strings.Builder
	var now [len(marks)]int
	color := ""
	flush := func() {
		if color == "" {
			text.WriteString(same.String())
		} else {
			text.WriteString(style.with(color, same.String()))
		}
		same.Reset()
	}
	for i := range l.scale.Cells {
		mark, paint := " ", ""
		for k := len(marks) - 1; k >= 0; k-- {
			if l.changes[k] == nil {
				continue
			}
			if now[k] += l.changes[k][i]; now[k] > 0 {
				mark, paint = marks[k].mark, marks[k].color
			}
		}
		if paint != color {
			flush()
			color = paint
		}
		same.WriteString(mark)
	}
	flush()
	return text.String()
}
