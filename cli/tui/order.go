package tui

import (
	"cmp"
	"maps"
	"slices"
)

// order returns the names of the tasks, parents before children, and tasks of
// one depth by their names.
func (b *Status) order() []string {
	if b.names != nil {
		return b.names
	}
	depths := make(map[string]int, len(b.tasks))
	for name := range b.tasks {
		b.depth(name, depths)
	}
	b.names = slices.SortedFunc(maps.Keys(b.tasks), func(x, y string) int {
		return cmp.Or(cmp.Compare(depths[x], depths[y]), cmp.Compare(x, y))
	})
	return b.names
}

// depth is the length of the longest path that leads to a task. The graph has
// no cycle, or the run would not have been accepted; one would only give odd depths.
func (b *Status) depth(name string, depths map[string]int) int {
	if d, known := depths[name]; known {
		return d
	}
	depths[name] = 0
	d := 0
	for _, parent := range b.tasks[name].GetDependsOn() {
		if _, told := b.tasks[parent]; told {
			d = max(d, b.depth(parent, depths)+1)
		}
	}
	depths[name] = d
	return d
}
