// Package timeline computes when tasks were queued, waited and ran: the bars of
// tasks and instances with the reason of each wait, lanes that count many bars
// cell by cell, and the axis that a chart of them has.
//
//	v1.Task ──> Bar ──> Span...          one task or instance
//	Bar...  ──> Lane ─> Counts, Ended    thousands of instances in one line
//	times   ──> Axis ─> Tick...
//
// It is pure and may import proto, drawing/words and workflows/phrase.
package timeline
