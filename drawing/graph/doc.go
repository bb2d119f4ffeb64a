// Package graph arranges the tasks of a run or a definition, for the terminal and
// for the page alike. What it computes depends on names and dependencies alone,
// never on states, so that a drawing is stable while the run continues.
//
//	v1.Run ──> []Node ─┬─> Layout    columns, rows and the ways of edges
//	                   └─> Forest    each task once, below its last parent
//
// Both take the order of tasks from layers: a task stands in the layer of its
// longest path from a root, and the layers are sorted so that few edges cross.
//
// It is pure and may import proto and drawing/words.
package graph
