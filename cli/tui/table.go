package tui

import (
	"fmt"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// row is a line of a table of tasks.
type row struct{ name, state, node, attempt, elapsed, note string }

func rowOf(name string, t *v1.Task, now time.Time) row {
	return row{name, t.GetState(), t.GetNode(), attempt(t), elapsed(t, now), note(t, now)}
}

// Table lists all tasks of a board, one a line, below a line of headings; the
// failed instances of a fanned-out task, some of them, follow it. Lines are cut to
// the width; 0: they are as long as they are.
func Table(b *Board, now time.Time, width int, style Style) []string {
	return table(b, b.order(), now, width, len(b.tasks)*maxFailedRows, style)
}

// table lists some tasks, and below them at most so many failed instances.
func table(b *Board, names []string, now time.Time, width, spare int, style Style) []string {
	nameWidth, nodeWidth := len("TASK"), len("NODE")
	for name, t := range b.tasks {
		nameWidth = max(nameWidth, min(len(name), maxNameWidth))
		nodeWidth = max(nodeWidth, min(len(t.GetNode()), maxNodeWidth))
	}
	var rows []row
	for _, name := range names {
		rows = append(rows, rowOf(name, b.tasks[name], now))
		failed := b.failedRows(name, now, min(spare, maxFailedRows))
		spare -= len(failed)
		rows = append(rows, failed...)
		for _, r := range failed {
			nameWidth = max(nameWidth, min(len(r.name), maxNameWidth))
			nodeWidth = max(nodeWidth, min(len(r.node), maxNodeWidth))
		}
	}
	line := func(r row, painted string) string {
		pad := strings.Repeat(" ", max(0, stateWidth-len(r.state)))
		text := fmt.Sprintf("%-*s  %s%s  %-*s  %-7s  %-7s  %s", nameWidth, r.name, painted, pad, nodeWidth, r.node, r.attempt, r.elapsed, r.note)
		return cut(strings.TrimRight(text, " "), width)
	}
	lines := []string{style.with(bold, line(row{"TASK", "STATE", "NODE", "ATTEMPT", "ELAPSED", "NOTE"}, "STATE"))}
	for _, r := range rows {
		lines = append(lines, line(r, style.paint(r.state, r.state)))
	}
	return lines
}
