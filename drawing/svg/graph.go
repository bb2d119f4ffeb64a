package svg

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"switchyard/drawing/graph"
	"switchyard/drawing/words"
)

// manyNodes is the maximum number of nodes for which boxes are drawn with two lines.
const manyNodes = 500

// form holds the dimensions of a graph in pixels.
type form struct {
	width, height float64 // of a box
	column, row   float64 // distances between boxes
	letters       int     // maximum length of a name
	second        int     // maximum length of the second line, which has the state, or 0 for boxes without one
}

// Narrow boxes are for runs whose tasks have short names: four columns of them are as wide as the text of a page.
var (
	large  = form{190, 38, 250, 50, 24, 30}
	narrow = form{156, 38, 192, 50, 18, 25}
	small  = form{112, 18, 150, 24, 16, 0}
)

// fewColumns is the maximum number of columns that are as wide as the text of a page with large boxes.
const fewColumns = 3

const margin = 8

// GraphOptions configures the drawing of a graph.
type GraphOptions struct {
	// Href returns the address that a task links to, or "" for none. Optional.
	Href func(task string) string
	// Name is the accessible name of the drawing.
	Name string
}

// Graph draws the nodes of a layout. Nodes have the ids n-NAME, so that Node can redraw them.
func Graph(l *graph.Layout, nodes []graph.Node, o GraphOptions) string {
	f, w := formOf(l, nodes), &writer{}
	width := 2*margin + f.width + f.column*float64(max(l.Columns-1, 0))
	height := 2*margin + f.row*l.Rows
	w.f(`<svg xmlns="http://www.w3.org/2000/svg" class="graph" width="%s" height="%s" viewBox="0 0 %s %s" role="group" aria-label="%s">`,
		number(width), number(height), number(width), number(height), escape(o.Name))
	w.WriteString(`<g class="edges">`)
	for _, link := range l.Links {
		w.link(f, l, link)
	}
	w.WriteString(`</g><g class="nodes">`)
	for i := range nodes {
		w.node(f, l.Boxes[i], nodes[i], o)
	}
	w.WriteString("</g></svg>")
	return w.String()
}

// Node draws only node i of a graph, exactly as Graph does.
func Node(l *graph.Layout, nodes []graph.Node, i int, o GraphOptions) string {
	w := &writer{}
	w.node(formOf(l, nodes), l.Boxes[i], nodes[i], o)
	return w.String()
}

func formOf(l *graph.Layout, nodes []graph.Node) form {
	if len(nodes) > manyNodes {
		return small
	}
	isLong := func(n graph.Node) bool { return n.State == "" || ansi.StringWidth(n.Name) > narrow.letters }
	if l.Columns <= fewColumns || slices.ContainsFunc(nodes, isLong) {
		return large
	}
	return narrow
}

// left returns the left edge of a column; middle returns the centre of a row.
func (f form) left(column int) float64    { return margin + f.column*float64(column) }
func (f form) middle(row float64) float64 { return margin + f.row*row - (f.row-f.height)/2 }

func (w *writer) link(f form, l *graph.Layout, link graph.Link) {
	if len(link.Steps) > 0 {
		w.WriteString(`<path class="edge" d="`)
		for _, s := range link.Steps {
			from, to := f.left(s.Column)+f.width, f.left(s.Column+1)
			w.curve(from, f.middle(s.From), to, f.middle(s.To))
			if s.Through {
				w.f("H%s", number(to+f.width))
			}
		}
		w.WriteString(`"/>`)
	}
	if len(link.Far) > 0 {
		w.WriteString(`<path class="edge far" d="`)
		from := l.Boxes[link.From]
		for _, child := range link.Far {
			to := l.Boxes[child]
			w.curve(f.left(from.Column)+f.width, f.middle(from.Row+0.5), f.left(to.Column), f.middle(to.Row+0.5))
		}
		w.WriteString(`"/>`)
	}
}

// curve draws an edge between two points.
func (w *writer) curve(x1, y1, x2, y2 float64) {
	if y1 == y2 {
		w.f("M%s %sH%s", number(x1), number(y1), number(x2))
		return
	}
	middle := number((x1 + x2) / 2)
	w.f("M%s %sC%s %s %s %s %s %s", number(x1), number(y1), middle, number(y1), middle, number(y2), number(x2), number(y2))
}

// marked returns the text of a task, which says so if the task is in `finally`.
func marked(isFinally bool, text string) string {
	if isFinally {
		return words.JoinNote("finally", text)
	}
	return text
}

func (w *writer) node(f form, b graph.Box, n graph.Node, o GraphOptions) {
	w.f(`<g id="n-%s" class="node %s" transform="translate(%s %s)">`, escape(n.Name), stateClass(n.Tone()), number(f.left(b.Column)), number(f.middle(b.Row+0.5)-f.height/2))
	href := ""
	if o.Href != nil {
		href = o.Href(n.Name)
	}
	if href != "" {
		w.f(`<a href="%s">`, escape(href))
	}
	w.title(strings.TrimSpace(n.Name + " " + marked(n.Finally, words.JoinNote(n.State, n.Note))))
	if n.Many {
		w.f(`<rect class="behind" x="3" y="3" width="%s" height="%s" rx="4"/>`, number(f.width), number(f.height))
	}
	w.f(`<rect class="box" width="%s" height="%s" rx="4"/>`, number(f.width), number(f.height))
	first := f.height/2 + 4
	if f.second > 0 {
		first = 16
	}
	w.f(`<text x="7" y="%s"><tspan class="sign">%s</tspan> %s</text>`, number(first), words.Sign(n.State), escape(words.Shorten(n.Name, f.letters)))
	if f.second > 0 {
		second := n.State
		if n.Many || n.State == "" {
			second = n.Note
		}
		second = marked(n.Finally, second)
		w.f(`<text class="second" x="7" y="31">%s</text>`, escape(ansi.Truncate(words.OneLine(second), f.second, "…")))
	}
	if href != "" {
		w.WriteString("</a>")
	}
	w.WriteString("</g>")
}
