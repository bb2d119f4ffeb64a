package tui

import (
	"strings"

	"switchyard/drawing/timeline"
)

// marks are what cells of a lane look like, by layer; those that hide others come first.
var marks = [...]struct{ mark, color, words string }{
	timeline.Runs:   {"█", green, "runs"},
	timeline.Fails:  {"▒", red, "failed attempt"},
	timeline.Waits:  {"░", yellow, "waits on its node"},
	timeline.Queues: {"·", faint, "queued"},
}

// drawLane draws a lane as text of as many cells.
func drawLane(l *timeline.Lane, style Style) string {
	var text, same strings.Builder
	var covers [len(marks)][]int
	for layer := range marks {
		covers[layer] = l.Covers(timeline.Layer(layer))
	}
	color := ""
	flush := func() {
		if color == "" {
			text.WriteString(same.String())
		} else {
			text.WriteString(style.with(color, same.String()))
		}
		same.Reset()
	}
	for i := range l.Scale().Cells {
		mark, paint := " ", ""
		for layer, m := range marks {
			if covers[layer] != nil && covers[layer][i] > 0 {
				mark, paint = m.mark, m.color
				break
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
