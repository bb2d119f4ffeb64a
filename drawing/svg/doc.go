// Package svg draws graphs and timelines as SVG, for the page, for reports and for
// files. All text is escaped. Colours are classes, for which Rules has the style;
// Document makes a file of its own of a drawing.
//
//	graph.Layout, []graph.Node ──> Graph, Node        a node is a <g> with an id
//	timeline.Axis, []Row ────────> Timeline, Lane     a row is a <div> with an id
//	                               TimelineChart      all in one <svg>
//
// It is pure and may import proto, drawing/graph, drawing/timeline, drawing/words and workflows/names.
package svg
