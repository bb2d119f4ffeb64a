package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"switchyard/drawing/words"
)

// lines arranges the drawing in columns and counts what it hides; whole reports whether each node has a line of its
// own.
func (d *drawing) lines() (lines []string, whole bool) {
	left, own := 0, 0
	for _, l := range d.out {
		if l.node >= 0 {
			left = max(left, min(maxLeft, ansi.StringWidth(l.lead)+2+len(d.Nodes[l.node].Name)))
		}
	}
	told := make([]bool, len(d.Nodes))
	lines = make([]string, 0, len(d.out)+1)
	for _, l := range d.out {
		for _, n := range l.many {
			told[n] = true
		}
		if l.node < 0 {
			lines = append(lines, l.lead+l.text)
			continue
		}
		told[l.node] = true
		own++
		lines = append(lines, d.nodeLine(l, left))
	}
	var untold []int
	for i := range d.Nodes {
		if !told[i] {
			untold = append(untold, i)
		}
	}
	if len(untold) > 0 {
		lines = append(lines, d.countHidden(untold))
	}
	return lines, own == len(d.Nodes)
}

func (d *drawing) nodeLine(l drawn, left int) string {
	n := d.Nodes[l.node]
	pad := strings.Repeat(" ", max(0, left-ansi.StringWidth(l.lead)-2-len(n.Name)))
	line := l.lead + d.style.paint(n.Tone(), words.Sign(n.State)) + " " + n.Name + pad
	if n.State != "" {
		line += "  " + d.style.paint(n.Tone(), fmt.Sprintf("%-*s", stateWidth, n.State))
	}
	if n.Note != "" {
		line += "  " + cut(words.OneLine(n.Note), maxNote)
	}
	if also := d.also(l.node); also != "" {
		line += "  " + d.style.with(faint, "("+also+")")
	}
	return strings.TrimRight(line, " ")
}

// also returns a note that names the parents of a node other than the one it is drawn below, or "" if there are none.
func (d *drawing) also(i int) string {
	var others []string
	more := 0
	for _, parent := range d.Nodes[i].After {
		switch at, drawn := d.Place[parent]; {
		case !drawn || at == d.Above[i]:
		case len(others) == maxAfter:
			more++
		default:
			others = append(others, parent)
		}
	}
	if len(others) == 0 {
		return ""
	}
	text := "also after " + strings.Join(others, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
