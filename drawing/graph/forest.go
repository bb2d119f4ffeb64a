package graph

// Forest is a spanning forest of a graph. Each node appears once, below the last of its parents in
// display order, so that it follows all of them.
type Forest struct {
	Nodes    []Node
	Roots    []int
	Children [][]int // children of each node
	Above    []int   // parent of each node, or -1 for a root
	Size     []int   // size of each subtree, including its root
	Place    map[string]int
}

// NewForest builds the forest of a graph, with siblings in layout order. It takes linear time in
// nodes and dependencies, and does not recurse.
func NewForest(nodes []Node) *Forest {
	f := &Forest{Nodes: nodes, Children: make([][]int, len(nodes)), Above: make([]int, len(nodes)), Size: make([]int, len(nodes)), Place: make(map[string]int, len(nodes))}
	for i, n := range nodes {
		f.Place[n.Name] = i
	}
	next, open := make([][]int, len(nodes)), make([]int, len(nodes))
	for _, i := range Order(nodes) {
		f.Above[i] = -1
		for _, parent := range nodes[i].After {
			if p, drawn := f.Place[parent]; drawn {
				next[p] = append(next[p], i)
				open[i]++
			}
		}
		if open[i] == 0 {
			f.Roots = append(f.Roots, i)
		}
	}
	var told []int
	for _, root := range f.Roots {
		for path := []int{root}; len(path) > 0; {
			at := path[len(path)-1]
			if f.Size[at] == 0 {
				f.Size[at] = 1
				told = append(told, at)
			}
			if len(next[at]) == 0 {
				path = path[:len(path)-1]
				continue
			}
			child := next[at][0]
			next[at] = next[at][1:]
			if open[child]--; open[child] == 0 {
				f.Children[at], f.Above[child] = append(f.Children[at], child), at
				path = append(path, child)
			}
		}
	}
	for i := len(told) - 1; i >= 0; i-- {
		if above := f.Above[told[i]]; above >= 0 {
			f.Size[above] += f.Size[told[i]]
		}
	}
	return f
}

// IsLeaf reports whether a node has no children in the forest.
func (f *Forest) IsLeaf(i int) bool { return len(f.Children[i]) == 0 }
