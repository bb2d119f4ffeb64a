// Package tui is what people see of a run while it goes and when it has ended: a
// table that is drawn again and again on a terminal, one line a change
// elsewhere, and a summary. All of it is text made from a Status; only Screen
// writes.
//
//	WatchRunResponse ──> Status ─┬──> View ────────> Screen.Draw    terminal
//	                             └──> Change.Line ─> Screen.Write   pipe
//	v1.Run ──> []graph.Node ───> Graph      the DAG, drawn
//	v1.Run ──> []timeline.Bar ─> Gantt      who ran when, and where
//
// It may import proto, drawing/graph, drawing/timeline and drawing/words for what the page says in the same way,
// workflows/names for the names of instances, and libraries.
package tui
