// Package tui formats a run for people during the run and after its end: a table
// that is redrawn on a terminal, one line per change elsewhere, and a summary. All
// functions turn a Status into text; only Screen writes.
//
//	WatchRunResponse ──> Status ─┬──> View ────────> Screen.Draw    terminal
//	                             └──> Change.Line ─> Screen.Write   pipe
//	v1.Run ──> []graph.Node ───> Graph      the DAG, drawn
//	v1.Run ──> []timeline.Bar ─> Gantt      when and where tasks ran
//
// It may import proto, drawing/graph, drawing/timeline and drawing/words for texts that the page shares,
// workflows/names for the names of instances, and libraries.
package tui
