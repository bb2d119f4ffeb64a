package tui

import (
	"fmt"

	"switchyard/drawing/graph"
)

// Bounds of a drawing that is not to show everything.
const (
	// maxGraphLines is how many lines a drawing has.
	maxGraphLines = 400
	// maxAlike is how many leaves of one task, or tasks of a chain, are drawn. Of
	// more, the first and last few and as many that are of interest are.
	maxAlike = 20
	fewAlike = 3
	// maxNesting is how deep a drawing is indented; deeper nodes follow further down.
	maxNesting = 12
	// maxAfter is how many parents a line names.
	maxAfter = 3
	// maxLeft is where the column of states begins at the latest.
	maxLeft = 56
	// maxNote is how many cells a note takes.
	maxNote = 100
)

// Graph draws the tasks of a graph, which come parents before children: each
// stands once, below the parent that is shown last, and names its other parents. An
// only child stands straight below its parent. What is nested very deep comes
// further down, with a line in its place. A large graph is cut where tasks
// are alike, and at some length, unless everything is to be shown; whole says that
// it was not. It is linear in tasks and dependencies.
//
//	✓ fetch           completed
//	├─ ✗ build        failed     exit code 2
//	│  ↓ – deploy     skipped
//	└─ ✓ lint         completed
//	   ├─ ✓ publish   completed
//	   └─ ● report    running    (also after build)
func Graph(nodes []graph.Node, everything bool, style Style) (lines []string, whole bool) {
	d := &drawing{Forest: graph.NewForest(nodes), style: style, all: everything}
	d.draw()
	return d.lines()
}

type drawing struct {
	*graph.Forest
	style Style
	all   bool
	out   []drawn
}

// drawn is a line: of a node, or a text that stands for some.
type drawn struct {
	lead string
	node int // -1: none
	text string
	many []int // the nodes that a text stands for
}

// item is a node, or several that are alike, to be drawn with what is below.
type item struct {
	drawn
	below   string // what lines further down begin with
	nesting int
}

// draw walks the forest with a stack of its own: it may be deep.
func (d *drawing) draw() {
	var stack, later []item
	push := func(items []item) {
		for i := len(items) - 1; i >= 0; i-- {
			stack = append(stack, items[i])
		}
	}
	push(d.siblings(d.Roots, "", -1))
	for d.all || len(d.out) < maxGraphLines {
		if len(stack) == 0 {
			if len(later) == 0 {
				return
			}
			push(later)
			later = nil
		}
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at.node >= 0 && at.nesting >= maxNesting && !d.IsLeaf(at.node) {
			name := d.Nodes[at.node].Name
			d.out = append(d.out, drawn{lead: at.lead, node: -1, text: fmt.Sprintf("▸ %s and %d below it, further down", name, d.Size[at.node]-1)})
			later = append(later, item{drawn: drawn{node: at.node}})
			continue
		}
		d.out = append(d.out, at.drawn)
		if at.node < 0 {
			continue
		}
		chain := d.chain(at.node)
		for _, c := range d.collapseSimilar(chain, func(int) bool { return true }) {
			c.lead = at.below + "↓ "
			d.out = append(d.out, c)
		}
		last, below := at.node, at.below
		if len(chain) > 0 {
			last, below = chain[len(chain)-1], below+"  "
		}
		push(d.siblings(d.Children[last], below, at.nesting))
	}
}

// chain are the only child of a node, the only child of that, and so on.
func (d *drawing) chain(from int) []int {
	var chain []int
	for len(d.Children[from]) == 1 {
		from = d.Children[from][0]
		chain = append(chain, from)
	}
	return chain
}

// siblings returns the items of the nodes below a node with the given nesting, which is -1 for the roots.
func (d *drawing) siblings(nodes []int, below string, nesting int) []item {
	picked := d.collapseSimilar(nodes, d.IsLeaf)
	items := make([]item, 0, len(picked))
	for i, p := range picked {
		it := item{drawn: p, nesting: nesting + 1}
		switch {
		case nesting < 0:
		case i == len(picked)-1:
			it.lead, it.below = below+"└─ ", below+"   "
		default:
			it.lead, it.below = below+"├─ ", below+"│  "
		}
		items = append(items, it)
	}
	return items
}
