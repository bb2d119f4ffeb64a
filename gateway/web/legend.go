package web

import "switchyard/drawing/timeline"

// legendEntry says what a kind of bars of a timeline means.
type legendEntry struct{ Class, Hatch, Text string }

// legend has all kinds of bars.
var legend = newLegend()

func newLegend() []legendEntry {
	entries := []legendEntry{
		{"k-run", "", "ran"}, {"k-run open", "", "runs"}, {"k-run-failed", "", "an attempt that failed; its number stands at its end"},
		{"k-queue", "", "was queued"}, {"k-wait", "", "waited on its node"},
	}
	for _, word := range timeline.Reasons() {
		entries = append(entries, legendEntry{"r-" + word, "h-" + word, timeline.Label(word)})
	}
	return entries
}
