// Package report writes a run as one HTML file: its graph, its timeline, its tasks, and its failures with the last lines of their
// logs. The file loads nothing, runs no script and is readable without style.
//
// It is pure and may import proto, drawing/graph, drawing/svg, drawing/timeline, drawing/words and workflows/names.
package report
