package graph

import (
	"cmp"
	"slices"
)

// item is a node of a component in its layer, or a bend in a chain of them, by
// which an edge passes a layer.
type item struct {
	rank     int
	bend     bool
	up, down []int // neighbours in the layers before and after
}

// layered is one component in layers: layer k has the items of rank k, in order.
// The first items are the nodes; bends follow.
type layered struct {
	nodes  int
	items  []item
	layers [][]int
	place  []int // of an item in its layer
	// chains has for each node the bends of its edges, one a layer: all of its
	// edges share them.
	chains [][]int
	// far has for each node the children that are too far away to have bends.
	far [][]int
}

// bendsPerEdge bounds the bends of a component by its nodes and edges, so that a drawing is linear in them.
const bendsPerEdge = 2

// newLayered puts a component with the given parents of each node into layers.
func newLayered(after [][]int) *layered {
	ranks := depths(after)
	l := &layered{nodes: len(after), items: make([]item, len(after)), chains: make([][]int, len(after)), far: make([][]int, len(after))}
	children, edges := make([][]int, len(after)), 0
	for i, parents := range after {
		l.items[i].rank = ranks[i]
		for _, p := range parents {
			if ranks[p] < ranks[i] { // always, but in a cycle
				children[p] = append(children[p], i)
				edges++
			}
		}
	}
	longest := longestChain(ranks, children, bendsPerEdge*(len(after)+edges))
	for p, below := range children {
		slices.SortStableFunc(below, func(x, y int) int { return cmp.Compare(ranks[x], ranks[y]) })
		last := p // node or bend from which the edges continue
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
	l.fill()
	return l
}

func (l *layered) connect(from, to int) {
	l.items[from].down = append(l.items[from].down, to)
	l.items[to].up = append(l.items[to].up, from)
}

// longestChain returns how many bends an edge may have for all to have at most most.
func longestChain(ranks []int, children [][]int, most int) int {
	var reach []int // how many nodes need a chain of at least so many bends
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

// fill orders the items of each layer as a walk in depth from the roots meets them.
func (l *layered) fill() {
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
	l.number()
}

// number notes the places of the items.
func (l *layered) number() {
	for _, layer := range l.layers {
		for at, i := range layer {
			l.place[i] = at
		}
	}
}
