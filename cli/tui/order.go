package tui

import "switchyard/drawing/graph"

// order returns the names of the tasks, parents before children, with tasks of equal depth sorted by name.
func (b *Status) order() []string {
	if b.names == nil {
		b.names = graph.ByDepth(b.tasks)
	}
	return b.names
}
