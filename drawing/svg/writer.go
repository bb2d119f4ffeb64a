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

// escape escapes an untrusted text for markup and flattens it to one line.
func escape(text string) string { return html.EscapeString(words.Visible(words.OneLine(text))) }

// number formats a coordinate with the visible precision.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// percent formats a fraction of 1 as a percentage.
func percent(part float64) string { return number(part*100) + "%" }

// title writes a tooltip unless the text is empty.
func (w *writer) title(text string) {
	if text != "" {
		w.f("<title>%s</title>", escape(text))
	}
}

// stateClass returns the CSS class of a state.
func stateClass(state string) string {
	if state == "" {
		return "s-none" // in a definition
	}
	return "s-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '_' {
			return r
		}
		return -1
	}, state)
}
