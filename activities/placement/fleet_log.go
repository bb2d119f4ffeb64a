package placement

// fleetLog records what has changed in the fleet. Each request class reads on from where it
// stopped, so that a class without waiting requests costs nothing meanwhile.
type fleetLog struct {
	room  nodeLog // nodes where room may have appeared
	shape nodeLog // nodes that are new, have left or have another class

	// Since the last pass.
	moreRoom bool // room may have appeared
	changed  bool // a snapshot, a state or a bench has changed
}

// noteRoom makes every class look at the node again.
func (l *fleetLog) noteRoom(n *node) {
	l.moreRoom = true
	l.room.note(n)
}

// noteShape makes every class decide again whether the node could ever run it.
func (l *fleetLog) noteShape(n *node) { l.shape.note(n) }

// setSize sets the number of nodes of the fleet.
func (l *fleetLog) setSize(nodes int) { l.room.limit, l.shape.limit = nodes, nodes }

// hasNews reports whether anything has changed since the last pass.
func (l *fleetLog) hasNews() bool { return l.moreRoom || l.changed }

// endPass marks all changes as known to the pass.
func (l *fleetLog) endPass() { l.moreRoom, l.changed = false, false }

// nodeLog is a log of nodes.
type nodeLog struct {
	from  uint64 // number of the first entry still in the log
	nodes []*node
	limit int
}

// note appends a node. When the log has become longer than the limit, the size of the fleet,
// reading it would be no cheaper than looking at every node, so note empties it.
func (l *nodeLog) note(n *node) {
	if len(l.nodes) > l.limit {
		l.from += uint64(len(l.nodes)) + 1
		clear(l.nodes)
		l.nodes = l.nodes[:0]
		return
	}
	l.nodes = append(l.nodes, n)
}

// end returns the number of the next entry.
func (l *nodeLog) end() uint64 { return l.from + uint64(len(l.nodes)) }

// since returns the nodes noted from an entry on. ok is false if some of these entries have been
// dropped.
func (l *nodeLog) since(entry uint64) (nodes []*node, ok bool) {
	if entry < l.from {
		return nil, false
	}
	return l.nodes[entry-l.from:], true
}
