// Package graph lays out the tasks of a run or a definition, for the terminal and for the web page. Layouts depend only on names
// and dependencies, not on states, so that a drawing stays stable while the run progresses.
//
//	v1.Run ──> []Node ─┬─> Layout    columns, rows and the ways of edges
//	                   └─> Forest    each task once, below its last parent
//
// Both order tasks by layers: a task belongs to the layer given by its longest path from a root, and each layer is sorted so that
// few edges cross.
//
// It is pure and may import proto and drawing/words.
package graph
