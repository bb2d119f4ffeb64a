package svg

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"switchyard/drawing/words"
)

// writer collects SVG text.
type writer struct{ strings.Builder }

func (w *writer) f(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// escape returns a text of strangers as it may stand in markup, in one line.
func escape(text string) string { return html.EscapeString(words.Visible(words.OneLine(text))) }

// number returns a coordinate, with as many digits as can be seen.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// percent returns a part of 1 as a percentage.
func percent(part float64) string { return number(part*100) + "%" }

// title writes a tooltip, if there is one.
func (w *writer) title(text string) {
	if text != "" {
		w.f("<title>%s</title>", escape(text))
	}
}

// stateClass returns the class of a state.
func stateClass(state string) string {
	if state == "" {
		return "s-none" // of a definition
	}
	return "s-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '_' {
			return r
		}
		return -1
	}, state)
}
