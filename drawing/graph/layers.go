package graph

import (
	"cmp"
	"slices"
)

// item is a node of a component, or a bend at which an edge passes through a layer.
type item struct {
	rank     int
	bend     bool
	up, down []int // neighbours in the previous and the next layer
}

// layered is a component arranged in layers: layer k holds the items of rank k, in order. Nodes
// precede bends in items.
type layered struct {
	nodes  int
	items  []item
	layers [][]int
	place  []int // position of each item in its layer
	// chains holds the bends of each node's edges, one per layer; all edges of a node share them.
	chains [][]int
	// far holds the children of each node that are too far away for a chain of bends.
	far [][]int
}

// bendsPerEdge bounds the bends of a component relative to its nodes and edges, so that a drawing
// has linear size.
const bendsPerEdge = 2

// newLayered arranges a component in layers. after holds the parents of each node.
func newLayered(after [][]int) *layered {
	ranks := depths(after)
	l := &layered{nodes: len(after), items: make([]item, len(after)), chains: make([][]int, len(after)), far: make([][]int, len(after))}
	children, edges := make([][]int, len(after)), 0
	for i, parents := range after {
		l.items[i].rank = ranks[i]
		for _, p := range parents {
			if ranks[p] < ranks[i] { // always true without cycles
				children[p] = append(children[p], i)
				edges++
			}
		}
	}
	longest := longestChain(ranks, children, bendsPerEdge*(len(after)+edges))
	for p, below := range children {
		slices.SortStableFunc(below, func(x, y int) int { return cmp.Compare(ranks[x], ranks[y]) })
		last := p // node or bend where the next edge branches off
		for _, child := range below {
			if ranks[child]-ranks[p]-1 > longest {
				l.far[p] = append(l.far[p], child)
				continue
			}
			for l.items[last].rank < ranks[child]-1 {
				bend := len(l.items)
				l.items = append(l.items, item{rank: l.items[last].rank + 1, bend: true})
				l.connect(last, bend)
				l.chains[p] = append(l.chains[p], bend)
				last = bend
			}
			l.connect(last, child)
		}
	}
	l.orderInitially()
	return l
}

func (l *layered) connect(from, to int) {
	l.items[from].down = append(l.items[from].down, to)
	l.items[to].up = append(l.items[to].up, from)
}

// longestChain returns the maximum length of a chain, in bends, for which all chains together stay
// within `most` bends.
func longestChain(ranks []int, children [][]int, most int) int {
	var reach []int // number of nodes that need at least so many bends
	for p, below := range children {
		need := 0
		for _, child := range below {
			need = max(need, ranks[child]-ranks[p]-1)
		}
		for len(reach) <= need {
			reach = append(reach, 0)
		}
		reach[need]++
	}
	for k := len(reach) - 2; k >= 0; k-- {
		reach[k] += reach[k+1]
	}
	bends := 0
	for k := 1; k < len(reach); k++ {
		if bends += reach[k]; bends > most {
			return k - 1
		}
	}
	return len(reach)
}

// orderInitially orders the items of each layer by a depth-first traversal from the roots.
func (l *layered) orderInitially() {
	last := 0
	for _, it := range l.items {
		last = max(last, it.rank)
	}
	l.layers, l.place = make([][]int, last+1), make([]int, len(l.items))
	seen := make([]bool, len(l.items))
	var stack []int
	for root := range l.items {
		if len(l.items[root].up) > 0 {
			continue
		}
		for stack = append(stack[:0], root); len(stack) > 0; {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[at] {
				continue
			}
			seen[at] = true
			l.layers[l.items[at].rank] = append(l.layers[l.items[at].rank], at)
			for _, child := range slices.Backward(l.items[at].down) {
				stack = append(stack, child)
			}
		}
	}
	l.updatePlaces()
}

// updatePlaces updates the positions of the items.
func (l *layered) updatePlaces() {
	for _, layer := range l.layers {
		for at, i := range layer {
			l.place[i] = at
		}
	}
}
