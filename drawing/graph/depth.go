package graph

import (
	"cmp"
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// ByDepth returns the names of tasks ordered by depth, then name, so that parents precede children.
func ByDepth(tasks map[string]*v1.Task) []string {
	names := slices.Sorted(maps.Keys(tasks))
	place := make(map[string]int, len(names))
	for i, name := range names {
		place[name] = i
	}
	after := make([][]int, len(names))
	for i, name := range names {
		for _, parent := range tasks[name].GetDependsOn() {
			if p, known := place[parent]; known {
				after[i] = append(after[i], p)
			}
		}
	}
	depths := depths(after)
	deepest := 0
	for i, name := range names {
		if !tasks[name].GetFinally() {
			deepest = max(deepest, depths[i])
		}
	}
	for i, name := range names {
		if tasks[name].GetFinally() {
			depths[i] += deepest + 1
		}
	}
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(depths[x], depths[y]) })
	sorted := make([]string, len(names))
	for at, i := range order {
		sorted[at] = names[i]
	}
	return sorted
}

// depths returns the length of the longest path to each node, where after holds the parents of each
// node. Validation rejects graphs with cycles; nodes in or below a cycle would get depth 0.
func depths(after [][]int) []int {
	next, open := make([][]int, len(after)), make([]int, len(after))
	var ready []int
	for i, parents := range after {
		for _, p := range parents {
			next[p] = append(next[p], i)
		}
		if open[i] = len(parents); open[i] == 0 {
			ready = append(ready, i)
		}
	}
	found := make([]int, len(after))
	for len(ready) > 0 {
		at := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, child := range next[at] {
			found[child] = max(found[child], found[at]+1)
			if open[child]--; open[child] == 0 {
				ready = append(ready, child)
			}
		}
	}
	for i, n := range open {
		if n > 0 {
			found[i] = 0
		}
	}
	return found
}
