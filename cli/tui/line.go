package tui

import (
	"fmt"
	"strings"
	"time"

	"switchyard/drawing/words"
	"switchyard/workflows/names"
)

// Lines formats each change as one line. Its columns grow with their contents and never shrink.
type Lines struct {
	Style      Style
	name, node int
}

// Line returns a change as one line, without the newline.
func (l *Lines) Line(c Change, now time.Time) string {
	at := c.At
	if at.IsZero() {
		at = now
	}
	t := c.Task
	l.name = max(l.name, min(len(c.Name), maxNameWidth))
	l.node = max(l.node, min(len(t.GetNode()), maxNodeWidth))
	tried := ""
	if a := words.Attempt(t); a != "" {
		tried = "attempt " + a
	}
	state := l.Style.paint(words.Tone(t), fmt.Sprintf("%-*s", stateWidth, t.GetState()))
	line := fmt.Sprintf("%s  %-*s  %s  %-*s  %-9s", l.Style.clock(at), l.name, c.Name, state, l.node, t.GetNode(), tried)
	if n := words.Note(t, now); n != "" {
		line += "  " + n
	}
	return strings.TrimRight(line, " ")
}

// Widen makes the name column wide enough for all known tasks and their instances.
func (l *Lines) Widen(b *Status) {
	for name, t := range b.tasks {
		if t.GetCount() > 0 {
			name = names.InstanceName(name, int(t.GetCount()-1))
		}
		l.name = max(l.name, min(len(name), maxNameWidth))
	}
}

// Note formats a text that is not about one task as a line like the others.
func (l *Lines) Note(text string, now time.Time) string {
	return l.Style.clock(now) + "  " + text
}
