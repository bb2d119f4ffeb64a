package graph

import (
	"cmp"
	"slices"
)

// component is a part of a graph that no edge leaves.
type component struct {
	nodes []int // as the graph numbers them, by name
	after [][]int
}

// components returns the parts of a graph in the order of their first names. What
// they are depends on names and edges alone, not on the order of nodes.
func components(nodes []Node) []component {
	byName := make([]int, len(nodes))
	for i := range byName {
		byName[i] = i
	}
	slices.SortStableFunc(byName, func(x, y int) int { return cmp.Compare(nodes[x].Name, nodes[y].Name) })
	place := make(map[string]int, len(nodes)) // in byName
	for at, i := range byName {
		place[nodes[i].Name] = at
	}
	// Nodes of one part have the same first node, which joins makes shorter to find.
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
