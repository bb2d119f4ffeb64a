package svg

import "switchyard/drawing/timeline"

// Legend returns HTML that explains the colours and patterns of a timeline. The document must
// contain Hatches.
func Legend() string {
	w := &writer{}
	w.WriteString(`<ul class="legend">`)
	entry := func(class, fill, text string) {
		w.f(`<li><svg width="26" height="14" aria-hidden="true"><rect class="%s" width="26" height="14"%s/></svg> %s</li>`, class, fill, escape(text))
	}
	entry("k-run", "", "ran")
	entry("k-run open", "", "runs")
	entry("k-run-failed", "", "failed attempt")
	entry("k-wait", "", "waited on its node")
	entry("k-queue", "", "queued")
	for _, word := range timeline.Reasons() {
		entry("k-queue", ` fill="url(#h-`+word+`)"`, timeline.Label(word))
	}
	w.WriteString("</ul>")
	return w.String()
}
