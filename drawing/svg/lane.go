package svg

import (
	"fmt"
	"strings"

	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
)

// laneHeight is the height of a lane in pixels.
const laneHeight = 20

// Minimum width of a span, and minimum distance between the numbers of failed attempts, as
// fractions of the axis.
const (
	leastWidth = 0.0015
	markApart  = 0.02
)

// lane draws the bar or strip of a row over the whole width of its element.
func (w *writer) lane(r Row, a timeline.Axis) {
	if r.Strip != nil {
		w.strip(r)
		return
	}
	for _, s := range r.Bar.Spans {
		w.span(s, a)
	}
	last := -1.0
	for _, s := range r.Bar.Spans {
		if at := a.Part(s.To); s.Failed && !s.Open && at-last >= markApart {
			last = at
			w.f(`<text class="retry" x="%s" y="9">✗%d</text>`, percent(at), s.Attempt)
		}
	}
}

func (w *writer) span(s timeline.Span, a timeline.Axis) {
	class, fill := "k-"+s.Kind, ""
	if s.Failed {
		class += "-failed"
	}
	if s.Why.Word != "" {
		class += " r-" + s.Why.Word
		fill = fmt.Sprintf(` fill="url(#h-%s)"`, s.Why.Word)
	}
	grows := ""
	if s.Open {
		class += " open"
		grows = fmt.Sprintf(` data-from="%d"`, s.From.UnixMilli())
	}
	from, to := a.Part(s.From), a.Part(s.To)
	w.f(`<rect class="%s" x="%s" y="3" width="%s" height="14"%s%s>`, class, percent(from), percent(max(to-from, leastWidth)), fill, grows)
	w.title(spanText(s))
	w.WriteString("</rect>")
}

// spanText describes a span. The text of an open span does not change with time.
func spanText(s timeline.Span) string {
	var parts []string
	switch s.Kind {
	case timeline.Queue:
		parts = append(parts, "queued")
	case timeline.Wait:
		parts = append(parts, "waits on "+s.Node)
	default:
		what := fmt.Sprintf("attempt %d", s.Attempt)
		if s.Failed {
			what += " failed"
		}
		if s.Node != "" {
			what += " on " + s.Node
		}
		parts = append(parts, what)
	}
	if s.Why.Word != "" {
		parts = append(parts, s.Why.String())
	}
	if !s.Open {
		parts = append(parts, words.Duration(s.To.Sub(s.From)))
	}
	return strings.Join(parts, ", ")
}

// strip draws a stacked chart of how many instances had ended, were running and were waiting at
// each time.
func (w *writer) strip(r Row) {
	cells := r.Strip.Scale().Cells
	shown := min(r.Strip.Scale().Cell(r.Until)+1, cells)
	layers := []struct {
		class  string
		counts []int
	}{
		{"strip-done", r.Strip.Ended(false)},
		{"strip-failed", r.Strip.Ended(true)},
		{"strip-running", sum(r.Strip.Covers(timeline.Runs), r.Strip.Covers(timeline.Fails))},
		{"strip-waiting", sum(r.Strip.Covers(timeline.Waits), r.Strip.Covers(timeline.Queues))},
	}
	w.f(`<svg class="strip" width="100%%" height="%d" viewBox="0 0 %d 100" preserveAspectRatio="none">`, laneHeight, cells)
	w.title(r.Note)
	below := make([]float64, shown)
	for _, layer := range layers {
		if layer.counts == nil {
			continue
		}
		top := make([]float64, shown)
		for i := range top {
			top[i] = min(below[i]+100*float64(layer.counts[i])/float64(max(r.Count, 1)), 100)
		}
		w.f(`<path class="%s" d="M0 %s`, layer.class, number(100-top[0]))
		for i := 1; i < shown; i++ {
			if top[i] != top[i-1] {
				w.f("H%dV%s", i, number(100-top[i]))
			}
		}
		w.f("H%dV%s", shown, number(100-below[shown-1]))
		for i := shown - 1; i > 0; i-- {
			if below[i] != below[i-1] {
				w.f("H%dV%s", i, number(100-below[i-1]))
			}
		}
		w.WriteString("H0")
		w.WriteString(`Z"/>`)
		below = top
	}
	w.WriteString("</svg>")
}

// sum adds the counts of the same cells. Either may be nil.
func sum(x, y []int) []int {
	if x == nil || y == nil {
		return append(x, y...)
	}
	all := make([]int, len(x))
	for i := range x {
		all[i] = x[i] + y[i]
	}
	return all
}
