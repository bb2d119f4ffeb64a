package tui

import (
	"fmt"
	"strings"
	"time"
)

// Table lists all tasks of a board, one a line, below a line of headings. Lines
// are cut to the width; 0: they are as long as they are.
func Table(b *Board, now time.Time, width int, style Style) []string {
	return table(b, b.order(), now, width, style)
}

func table(b *Board, names []string, now time.Time, width int, style Style) []string {
	nameWidth, nodeWidth := len("TASK"), len("NODE")
	for name, t := range b.tasks {
		nameWidth = max(nameWidth, min(len(name), maxNameWidth))
		nodeWidth = max(nodeWidth, min(len(t.GetNode()), maxNodeWidth))
	}
	row := func(name, state, painted, node, attempt, elapsed, note string) string {
		pad := strings.Repeat(" ", max(0, stateWidth-len(state)))
		line := fmt.Sprintf("%-*s  %s%s  %-*s  %-7s  %-7s  %s", nameWidth, name, painted, pad, nodeWidth, node, attempt, elapsed, note)
		return cut(strings.TrimRight(line, " "), width)
	}
	heading := row("TASK", "STATE", "STATE", "NODE", "ATTEMPT", "ELAPSED", "NOTE")
	lines := []string{style.with(bold, heading)}
	for _, name := range names {
		t := b.tasks[name]
		state := t.GetState()
		lines = append(lines, row(name, state, style.paint(state, state), t.GetNode(), attempt(t), elapsed(t, now), note(t, now)))
	}
	return lines
}
