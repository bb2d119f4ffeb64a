// Package svg draws graphs and timelines as SVG, for the web page, for reports and for files. All text is escaped. Colours are CSS
// classes, which Rules styles. Document turns a drawing into a self-contained file.
//
//	graph.Layout, []graph.Node ──> Graph, Node        a node is a <g> with an id
//	timeline.Axis, []Row ────────> Timeline, Lane     a row is a <div> with an id
//	                               TimelineChart      all in one <svg>
//
// It is pure and may import proto, drawing/graph, drawing/timeline, drawing/words and workflows/names.
package svg
