package graph

import (
	"cmp"
	"math"
	"slices"
)

// Layout places the nodes of a graph in columns from left to right and rows from top to bottom.
// Disconnected parts are placed side by side and below each other.
type Layout struct {
	// Boxes are the places of the nodes, in the order of the nodes.
	Boxes []Box
	// Links are the edges, grouped by the node that they leave.
	Links []Link
	// Order lists the nodes by rank, then by part, then from top to bottom.
	Order []int
	// Columns and Rows are the size of the drawing.
	Columns int
	Rows    float64
}

// Box is the place of a node.
type Box struct {
	Rank   int // length of the longest path to the node
	Column int
	Row    float64 // top edge; the height is 1
}

// Link holds the edges that leave a node. They share their path as far as possible.
type Link struct {
	From int
	// Steps lead from the right side of a column to the left side of the next.
	Steps []Step
	// Far holds the children that are too far away to route an edge around other nodes.
	Far []int
}

// Step is a part of an edge, from the right side of a column to the left side of the next one.
// Heights are in rows.
type Step struct {
	Column   int // the column that it leaves
	From, To float64
	Through  bool // whether the edge crosses the next column at the same height
}

// Proportions: the wanted width-to-height ratios of a drawing and of a column.
const (
	wantedRatio = 1.8
	columnRatio = 4.5
)

// gapRows is the gap between parts that are below each other, in rows.
const gapRows = 0.5

// NewLayout lays out nodes. The result depends only on names and dependencies, not on the order or
// the states of nodes. It takes linear time in nodes and edges.
func NewLayout(nodes []Node) *Layout {
	parts := components(nodes)
	l := &Layout{Boxes: make([]Box, len(nodes)), Order: make([]int, 0, len(nodes))}
	drawn := make([]*layered, len(parts))
	rows := make([][]int, len(parts))
	sizes := make([]size, len(parts))
	for k, part := range parts {
		drawn[k] = newLayered(part.after)
		drawn[k].reduceCrossings()
		rows[k] = drawn[k].rows()
		sizes[k] = size{len(drawn[k].layers), float64(slices.Max(rows[k])+betweenNodes) / betweenNodes}
	}
	corners := l.pack(sizes)
	for k, part := range parts {
		l.add(part, drawn[k], rows[k], corners[k])
	}
	l.Order = orderOf(nodes, parts, drawn)
	return l
}

// Order returns the order that NewLayout computes, without the rest of the layout.
func Order(nodes []Node) []int {
	parts := components(nodes)
	drawn := make([]*layered, len(parts))
	for k, part := range parts {
		drawn[k] = newLayered(part.after)
		drawn[k].reduceCrossings()
	}
	return orderOf(nodes, parts, drawn)
}

func orderOf(nodes []Node, parts []component, drawn []*layered) []int {
	type placed struct{ node, rank int }
	all := make([]placed, 0, len(nodes))
	for k, part := range parts {
		for rank, layer := range drawn[k].layers {
			for _, i := range layer {
				if i < drawn[k].nodes {
					all = append(all, placed{part.nodes[i], rank})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(x, y placed) int { return cmp.Compare(x.rank, y.rank) })
	order := make([]int, len(all))
	for at, p := range all {
		order[at] = p.node
	}
	return order
}

// size is the size of a part; corner is its first column and row.
type size struct {
	columns int
	rows    float64
}

type corner struct {
	column int
	row    float64
}

// pack places parts side by side as long as they fit the width, then below: parts with edges first,
// then single nodes.
func (l *Layout) pack(sizes []size) []corner {
	area, widest := 0.0, 0
	for _, s := range sizes {
		area += float64(s.columns) * s.rows
		widest = max(widest, s.columns)
	}
	width := max(widest, int(math.Round(math.Sqrt(area*wantedRatio/columnRatio))))
	corners := make([]corner, len(sizes))
	column, row, height := 0, 0.0, 0.0
	for _, single := range []bool{false, true} {
		for k, s := range sizes {
			if (s.columns == 1) != single {
				continue
			}
			if column > 0 && column+s.columns > width {
				column, row = 0, row+height
				if !single || height > 1 {
					row += gapRows
				}
				height = 0
			}
			corners[k] = corner{column, row}
			column, height = column+s.columns, max(height, s.rows)
			l.Columns, l.Rows = max(l.Columns, column), max(l.Rows, row+s.rows)
		}
	}
	return corners
}

// add adds a part at a corner. rows holds the rows of its items.
func (l *Layout) add(part component, d *layered, rows []int, at corner) {
	middle := func(i int) float64 { return at.row + (float64(rows[i])+betweenNodes/2)/betweenNodes }
	for i, node := range part.nodes {
		l.Boxes[node] = Box{d.items[i].rank, at.column + d.items[i].rank, at.row + float64(rows[i])/betweenNodes}
		link := Link{From: node}
		for _, from := range append([]int{i}, d.chains[i]...) {
			for _, to := range d.items[from].down {
				link.Steps = append(link.Steps, Step{at.column + d.items[from].rank, middle(from), middle(to), d.items[to].bend})
			}
		}
		for _, child := range d.far[i] {
			link.Far = append(link.Far, part.nodes[child])
		}
		if len(link.Steps)+len(link.Far) > 0 {
			l.Links = append(l.Links, link)
		}
	}
}
