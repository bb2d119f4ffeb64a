// Package report makes one HTML file of a run: its graph, its timeline, its tasks,
// and what failed with the last lines of its logs. The file loads nothing, runs no
// script and is readable without style.
//
// It is pure and may import proto, drawing/graph, drawing/svg, drawing/timeline, drawing/words and workflows/names.
package report
