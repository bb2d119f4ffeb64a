package graph

import (
	"cmp"
	"slices"
)

// component is a connected part of a graph.
type component struct {
	nodes []int // node indices in the graph, ordered by name
	after [][]int
}

// components returns the connected parts of a graph, ordered by their first names. The result
// depends only on names and edges, not on the order of nodes.
func components(nodes []Node) []component {
	byName := make([]int, len(nodes))
	for i := range byName {
		byName[i] = i
	}
	slices.SortStableFunc(byName, func(x, y int) int { return cmp.Compare(nodes[x].Name, nodes[y].Name) })
	place := make(map[string]int, len(nodes)) // position in byName
	for at, i := range byName {
		place[nodes[i].Name] = at
	}
	// Union-find: the nodes of a part share a root, the first node by name. find shortens the
	// paths.
	first := make([]int, len(nodes))
	for at := range first {
		first[at] = at
	}
	find := func(at int) int {
		for first[at] != at {
			first[at] = first[first[at]]
			at = first[at]
		}
		return at
	}
	after := make([][]int, len(nodes))
	for at, i := range byName {
		for _, name := range nodes[i].After {
			if p, drawn := place[name]; drawn && p != at {
				after[at] = append(after[at], p)
				a, b := find(at), find(p)
				first[max(a, b)] = min(a, b)
			}
		}
		slices.Sort(after[at])
		after[at] = slices.Compact(after[at])
	}
	var found []component
	part, local := make([]int, len(nodes)), make([]int, len(nodes))
	for at, i := range byName {
		if root := find(at); root == at {
			part[at] = len(found)
			found = append(found, component{})
		} else {
			part[at] = part[root]
		}
		c := &found[part[at]]
		local[at] = len(c.nodes)
		c.nodes = append(c.nodes, i)
	}
	for at := range byName {
		parents := make([]int, 0, len(after[at]))
		for _, p := range after[at] {
			parents = append(parents, local[p])
		}
		c := &found[part[at]]
		c.after = append(c.after, parents)
	}
	return found
}
