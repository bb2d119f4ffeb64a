package tui

import (
	"fmt"

	"switchyard/drawing/graph"
)

// Limits of a drawing that does not show everything.
const (
	// maxGraphLines is the most lines of a drawing.
	maxGraphLines = 400
	// maxAlike is the most leaves of one task, or tasks of a chain, that are all drawn. Of more, the drawing shows the
	// first and last few, and the same number of notable ones.
	maxAlike = 20
	fewAlike = 3
	// maxNesting is the deepest indentation of a drawing. Deeper nodes follow further down.
	maxNesting = 12
	// maxAfter is the most parents that a line names.
	maxAfter = 3
	// maxLeft is the rightmost column at which states may begin.
	maxLeft = 56
	// maxNote is the most cells of a note.
	maxNote = 100
)

// Graph draws the tasks of a graph, which must list parents before children. Each task appears once, below its last
// drawn parent, and names its other parents. An only child stands directly below its parent. Deeply nested tasks follow
// further down, and a line marks their place. Unless everything is set, Graph cuts a large graph where tasks are alike,
// and at a maximum length; whole reports that nothing was cut. It runs in time linear in tasks and dependencies.
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

// drawn is one line: a node, or a text that stands for hidden nodes.
type drawn struct {
	lead string
	node int // -1 for a text
	text string
	many []int // the nodes that a text stands for
}

// item is a node, or a text for several similar nodes, that is still to be drawn with its children.
type item struct {
	drawn
	below   string // prefix of the lines below
	nesting int
}

// draw walks the forest with an explicit stack, because the forest may be deep.
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

// chain returns the only child of a node, the only child of that child, and so on.
func (d *drawing) chain(from int) []int {
	var chain []int
	for len(d.Children[from]) == 1 {
		from = d.Children[from][0]
		chain = append(chain, from)
	}
	return chain
}

// siblings returns the items for the children of a node with the given nesting, which is -1 for the roots.
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
