package svg

import (
	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
)

// TimelineOptions configures the drawing of a timeline.
type TimelineOptions struct {
	// Href returns the address that a row links to, or "" for none. Optional.
	Href func(row Row) string
	// Name is the accessible name of the drawing.
	Name string
}

// Timeline draws rows on an axis as HTML. Each row is a separate element, as Lane draws it. The
// attributes data-from and data-to of the root hold the time range of the axis.
func Timeline(rows []Row, a timeline.Axis, o TimelineOptions) string {
	w := &writer{}
	w.f(`<div class="timeline" role="group" aria-label="%s" data-from="%d" data-to="%d">`, escape(o.Name), a.From.UnixMilli(), a.To.UnixMilli())
	w.WriteString(Hatches())
	w.WriteString(AxisRow(a))
	for _, r := range rows {
		w.row(r, a, o)
	}
	w.WriteString("</div>")
	return w.String()
}

// Lane draws one row exactly as Timeline does: an element with the id of the row.
func Lane(r Row, a timeline.Axis, o TimelineOptions) string {
	w := &writer{}
	w.row(r, a, o)
	return w.String()
}

// AxisRow draws the ticks of an axis as a row with the id "timeline-axis".
func AxisRow(a timeline.Axis) string {
	w := &writer{}
	w.f(`<div class="lane axis" id="timeline-axis"><span class="lane-name"></span><svg width="100%%" height="%d" aria-hidden="true">`, laneHeight)
	w.ticks(a)
	w.WriteString(`</svg><span class="lane-note"></span></div>`)
	return w.String()
}

func (w *writer) row(r Row, a timeline.Axis, o TimelineOptions) {
	class := "lane"
	if r.IsInstance {
		class += " instance"
	}
	w.f(`<div class="%s" id="%s"><span class="lane-name %s"><span class="sign">%s</span> `, class, escape(r.ID()), stateClass(r.Tone), words.Sign(r.State))
	href := ""
	if o.Href != nil {
		href = o.Href(r)
	}
	if href != "" {
		w.f(`<a href="%s">%s</a>`, escape(href), escape(r.Name))
	} else {
		w.WriteString(escape(r.Name))
	}
	w.f(`</span><svg width="100%%" height="%d" role="img" aria-label="%s">`, laneHeight, escape(r.Name+" "+marked(r.Finally, words.JoinNote(r.State, r.Note))))
	w.lane(r, a)
	w.f(`</svg><span class="lane-note">%s</span></div>`, escape(noteOf(r)))
}

// noteOf returns the text beside a lane: the state and the note.
func noteOf(r Row) string {
	text := r.State
	if r.Note != "" {
		text += ", " + r.Note
	}
	return marked(r.Finally, text)
}

// ticks draws the labelled ticks of an axis.
func (w *writer) ticks(a timeline.Axis) {
	for i, t := range a.Ticks {
		at, anchor := a.Part(t.At), "middle"
		switch {
		case i == 0:
			anchor = "start"
		case at > 0.97:
			anchor = "end"
		}
		w.f(`<line class="tick" x1="%s" x2="%s" y1="14" y2="20"/>`, percent(at), percent(at))
		w.f(`<text class="tick" x="%s" y="11" text-anchor="%s">%s</text>`, percent(at), anchor, escape(t.Label))
	}
}

// Dimensions of a timeline in a single SVG, in pixels.
const (
	chartWidth = 1200
	chartNames = 260
	chartNotes = 240
)

// TimelineChart draws rows on an axis as a single <svg>, for a file.
func TimelineChart(rows []Row, a timeline.Axis, o TimelineOptions) string {
	w := &writer{}
	height := (len(rows)+1)*(laneHeight+2) + 2*margin
	w.f(`<svg xmlns="http://www.w3.org/2000/svg" class="timeline-chart" width="%d" height="%d" viewBox="0 0 %d %d" role="group" aria-label="%s">`,
		chartWidth, height, chartWidth, height, escape(o.Name))
	w.WriteString(patterns)
	const lane = chartWidth - chartNames - chartNotes
	w.f(`<svg x="%d" y="%d" width="%d" height="%d" overflow="visible">`, chartNames, margin, lane, laneHeight)
	w.ticks(a)
	w.WriteString("</svg>")
	for i, r := range rows {
		y, x := margin+(i+1)*(laneHeight+2), margin
		if r.IsInstance {
			x += 14
		}
		w.f(`<g class="row"><text class="lane-name %s" x="%d" y="%d"><tspan class="sign">%s</tspan> %s</text>`,
			stateClass(r.Tone), x, y+14, words.Sign(r.State), escape(words.Shorten(r.Name, 32)))
		w.f(`<svg x="%d" y="%d" width="%d" height="%d"><rect class="lane-back" width="100%%" height="%d"/>`, chartNames, y, lane, laneHeight, laneHeight)
		w.lane(r, a)
		w.f(`</svg><text class="lane-note" x="%d" y="%d">%s</text></g>`, chartNames+lane+8, y+14, escape(words.Shorten(noteOf(r), 36)))
	}
	w.WriteString("</svg>")
	return w.String()
}
