// Package timeline computes when tasks were queued, waiting and running: bars of tasks and instances with the reason of each
// wait, lanes that aggregate many bars into cells, and the time axis of a chart.
//
//	v1.Task ──> Bar ──> Span...          one task or instance
//	Bar...  ──> Lane ─> Counts, Ended    thousands of instances in one line
//	times   ──> Axis ─> Tick...
//
// It is pure and may import proto, drawing/words and workflows/phrase.
package timeline
