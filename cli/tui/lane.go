package tui

import (
	"strings"

	"switchyard/drawing/timeline"
)

// marks defines how the cells of a lane look, by layer. Earlier layers hide later ones.
var marks = [...]struct{ mark, color, words string }{
	timeline.Runs:   {"█", green, "runs"},
	timeline.Fails:  {"▒", red, "failed attempt"},
	timeline.Waits:  {"░", yellow, "waits on its node"},
	timeline.Queues: {"·", faint, "queued"},
}

// drawLane draws a lane as text, one character per cell.
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
