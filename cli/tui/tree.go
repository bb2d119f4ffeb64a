package tui

// tree is a graph laid out as a forest: each node stands once, below the one of
// its parents that is shown last, so that a node always comes after all of its
// parents.
type tree struct {
	nodes    []Node
	roots    []int
	children [][]int // below a node
	above    []int   // the node that it stands below, or -1 for a root
	size     []int   // of the subtree, the node counted
	place    map[string]int
}

// layOut takes nodes with parents before children; it is linear in nodes and
// dependencies, and needs no stack of their depth.
func layOut(nodes []Node) *tree {
	t := &tree{nodes: nodes, children: make([][]int, len(nodes)), above: make([]int, len(nodes)), size: make([]int, len(nodes)), place: make(map[string]int, len(nodes))}
	for i, n := range nodes {
		t.place[n.Name] = i
	}
	next, open := make([][]int, len(nodes)), make([]int, len(nodes))
	for i, n := range nodes {
		t.above[i] = -1
		for _, parent := range n.After {
			if p, drawn := t.place[parent]; drawn {
				next[p] = append(next[p], i)
				open[i]++
			}
		}
		if open[i] == 0 {
			t.roots = append(t.roots, i)
		}
	}
	var told []int
	for _, root := range t.roots {
		for path := []int{root}; len(path) > 0; {
			at := path[len(path)-1]
			if t.size[at] == 0 {
				t.size[at] = 1
				told = append(told, at)
			}
			if len(next[at]) == 0 {
				path = path[:len(path)-1]
				continue
			}
			child := next[at][0]
			next[at] = next[at][1:]
			if open[child]--; open[child] == 0 {
				t.children[at], t.above[child] = append(t.children[at], child), at
				path = append(path, child)
			}
		}
	}
	for i := len(told) - 1; i >= 0; i-- {
		if above := t.above[told[i]]; above >= 0 {
			t.size[above] += t.size[told[i]]
		}
	}
	return t
}

// leaf says that nothing stands below a node.
func (t *tree) leaf(i int) bool { return len(t.children[i]) == 0 }
