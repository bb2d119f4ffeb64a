package tui

import (
	"fmt"
	"strings"
	"time"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// row is a row of a table of tasks.
type row struct{ name, state, tone, node, attempt, elapsed, note string }

func rowOf(name string, t *v1.Task, now time.Time) row {
	return row{name, t.GetState(), words.Tone(t), t.GetNode(), words.Attempt(t), words.Elapsed(t, now), words.Note(t, now)}
}

// Table lists all tasks of a run, one a line, below a heading, and those of finally below another one. Some failed instances follow their
// fanned-out task.
// Lines are cut to the width; 0 means no limit.
func Table(b *Status, now time.Time, width int, style Style) []string {
	return table(b, b.order(), now, width, len(b.tasks)*maxFailedRows, style)
}

// table lists the given tasks, those of finally below a heading, and below each at most some failed instances. Spare is the most lines
// for these and the heading.
func table(b *Status, names []string, now time.Time, width, spare int, style Style) []string {
	rows := []row{{"TASK", "STATE", "", "NODE", "ATTEMPT", "ELAPSED", "NOTE"}}
	longest := row{name: "TASK", node: "NODE"}
	for name, t := range b.tasks {
		longest.widen(row{name: name, node: t.GetNode()})
		if t.GetFinally() {
			longest.widen(row{name: finallyHeading})
		}
	}
	inFinally := false
	for _, name := range names {
		if b.tasks[name].GetFinally() && !inFinally && spare > 0 {
			rows, spare, inFinally = append(rows, row{name: finallyHeading}), spare-1, true
		}
		rows = append(rows, rowOf(name, b.tasks[name], now))
		failed := b.failedRows(name, now, min(spare, maxFailedRows))
		spare -= len(failed)
		rows = append(rows, failed...)
		for _, r := range failed {
			longest.widen(r)
		}
	}
	c := columnsOf(len(longest.name), len(longest.node), width)
	lines := make([]string, 0, len(rows))
	for i, r := range rows {
		state := style.paint(r.tone, r.state)
		if i == 0 {
			state = r.state
		}
		line := cut(c.line(r, state), width)
		if i == 0 {
			line = style.with(bold, line)
		}
		lines = append(lines, line)
	}
	return lines
}

// finallyHeading stands above the tasks of finally.
const finallyHeading = "FINALLY"

// widen makes a row at least as wide as the name and the node of another row.
func (r *row) widen(other row) {
	if len(other.name) > len(r.name) {
		r.name = other.name
	}
	if len(other.node) > len(r.node) {
		r.node = other.node
	}
}

// columns holds the widths of the columns of a table, or 0 for a hidden column.
type columns struct{ name, node, attempt, elapsed int }

const (
	// gap is the space between two columns, and numberWidth the width of a column of numbers.
	gap, numberWidth = 2, 7
	// leastName and leastNote are the widths that other columns must leave to names and to notes such as "70/600 done".
	// goodNote is the width that names must leave to notes.
	leastName, leastNote, goodNote = 12, 13, 24
)

// columnsOf returns the columns for names and nodes of the given lengths on a line of the given width; 0 means no
// limit. The state is always shown. If there is too little room, it hides the node first, then the attempt, then the
// time.
func columnsOf(name, node, width int) columns {
	c := columns{name: name, node: node, attempt: numberWidth, elapsed: numberWidth}
	if width <= 0 {
		return c
	}
	c.node = min(node, maxNodeWidth)
	// room returns the cells that a line has left for the name and the note.
	room := func() int {
		left := width - stateWidth - gap
		for _, column := range []int{c.node, c.attempt, c.elapsed} {
			if column > 0 {
				left -= column + gap
			}
		}
		return left
	}
	least := min(name, leastName)
	for _, column := range []*int{&c.node, &c.attempt, &c.elapsed} {
		if room() >= least+gap+leastNote {
			break
		}
		*column = 0
	}
	c.name = max(1, min(name, max(least, room()-goodNote-gap), room()))
	return c
}

// line formats a row in these columns; state is the coloured state.
func (c columns) line(r row, state string) string {
	var text strings.Builder
	column := func(width int, value string) {
		if width > 0 {
			fmt.Fprintf(&text, "%s%-*s", strings.Repeat(" ", gap), width, words.Shorten(value, width))
		}
	}
	fmt.Fprintf(&text, "%-*s%*s%s%s", c.name, words.Shorten(r.name, c.name), gap, "", state, strings.Repeat(" ", max(0, stateWidth-len(r.state))))
	column(c.node, r.node)
	column(c.attempt, r.attempt)
	column(c.elapsed, r.elapsed)
	text.WriteString(strings.Repeat(" ", gap) + r.note)
	return strings.TrimRight(text.String(), " ")
}
