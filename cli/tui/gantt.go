package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// Row is a row of a Gantt chart: one task or instance, or many instances on one node.
type Row struct {
	Name  string
	Node  string // "" before a node is assigned
	State string // for a single task or instance
	Lane  *timeline.Lane
}

// Widths of the parts of a Gantt chart besides the lane.
const (
	ganttNames = 28
	ganttNote  = 22
	minLane    = 20
)

// LaneWidth returns the width of a lane in a chart of the given width, in cells.
func LaneWidth(width int) int { return max(minLane, width-ganttNames-ganttNote-4) }

// Gantt draws rows sorted by node and start time. It draws only the most rows that took longest; 0 means all rows.
func Gantt(rows []Row, scale timeline.Scale, most int, style Style) []string {
	left := 0
	if most > 0 && len(rows) > most {
		left = len(rows) - most
		rows = slices.SortedStableFunc(slices.Values(rows), func(x, y Row) int { return cmp.Compare(y.took(), x.took()) })[:most]
	}
	rows = slices.SortedStableFunc(slices.Values(rows), func(x, y Row) int {
		// Rows without a node come last.
		return cmp.Or(
			cmp.Compare(boolInt(x.Node == ""), boolInt(y.Node == "")), cmp.Compare(x.Node, y.Node),
			x.Lane.From.Compare(y.Lane.From), cmp.Compare(x.Name, y.Name),
		)
	})
	lines := []string{legend(style), axis(scale)}
	for i, r := range rows {
		if i == 0 || r.Node != rows[i-1].Node {
			lines = append(lines, style.with(bold, ganttHeading(rows[i:])))
		}
		lines = append(lines, r.line(style))
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %d that took less time", left))
	}
	return lines
}

func (r Row) took() time.Duration { return r.Lane.To.Sub(r.Lane.From) }

func (r Row) line(style Style) string {
	name := cut(r.Name, ganttNames-2)
	note := words.Duration(r.Lane.Took[timeline.Run])
	if r.Lane.Bars > 1 {
		note = fmt.Sprintf("%d instances, %s", r.Lane.Bars, note)
	} else if r.State != "" && r.State != v1.TaskCompleted {
		note += " " + style.paint(r.State, r.State)
	}
	pad := strings.Repeat(" ", max(0, ganttNames-2-len([]rune(name))))
	return "  " + name + pad + " │" + drawLane(r.Lane, style) + "│ " + note
}

// ganttHeading returns the heading above the rows on the first row's node.
func ganttHeading(rows []Row) string {
	n, run := 0, time.Duration(0)
	for _, r := range rows {
		if r.Node != rows[0].Node {
			break
		}
		n += r.Lane.Bars
		run += r.Lane.Took[timeline.Run]
	}
	if rows[0].Node == "" {
		return fmt.Sprintf("no node  %d wait", n)
	}
	return fmt.Sprintf("%s  %d ran, %s of run time", rows[0].Node, n, words.Duration(run))
}

func legend(style Style) string {
	var parts []string
	for _, m := range slices.Backward(marks[:]) {
		parts = append(parts, style.with(m.color, m.mark)+" "+m.words)
	}
	return strings.Join(parts, "   ")
}

// axis returns the time axis, with as many labels as fit.
func axis(scale timeline.Scale) string {
	const every = 16
	whole, text := scale.To.Sub(scale.From), strings.Repeat(" ", ganttNames+1)
	for cell := 0; cell < scale.Cells; cell += every {
		text += fmt.Sprintf("%-*s", every, "│"+words.Duration(whole*time.Duration(cell)/time.Duration(max(scale.Cells, 1))))
	}
	return strings.TrimRight(text, " ")
}
