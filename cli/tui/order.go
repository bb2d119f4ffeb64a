package tui

import "switchyard/drawing/graph"

// order returns the names of the tasks, parents before children, and tasks of
// one depth by their names.
func (b *Status) order() []string {
	if b.names == nil {
		b.names = graph.ByDepth(b.tasks)
	}
	return b.names
}
