package placement

// prospects holds the nodes that could ever run a request class, as the class last saw the fleet.
type prospects struct {
	// A node in avoided is used only if no preferred node is available. A node that turns out never
	// to fit is removed when a pass reaches it.
	preferred, avoided pool
	verdicts           []verdict // of the node classes, by number
	layout             uint64    // value of fleet.layout for which the pools were built; 0 means not built
	shape, room        uint64    // positions in the fleet's log up to which the class has read
	ranking            ranking
	guarded            bool // some node was guarded from the class since it became active
}

// isPossible reports whether any present node could ever run the class. It is valid after all nodes
// have been evaluated.
func (p *prospects) isPossible() bool { return len(p.preferred.nodes)+len(p.avoided.nodes) > 0 }

// mayFit reports whether some node is not known to be full.
func (p *prospects) mayFit() bool { return p.preferred.open+p.avoided.open > 0 }

// reopen makes the class look at a node again, if it could ever run there.
func (p *prospects) reopen(n *node) {
	p.preferred.reopen(n.number)
	p.avoided.reopen(n.number)
}

// reopenAll makes the class look at all its nodes again.
func (p *prospects) reopenAll() {
	p.preferred.reopenAll()
	p.avoided.reopenAll()
}

// verdictOf returns the place of the verdict for a node class.
func (p *prospects) verdictOf(class int) *verdict {
	if missing := class + 1 - len(p.verdicts); missing > 0 {
		p.verdicts = append(p.verdicts, make([]verdict, missing)...)
	}
	return &p.verdicts[class]
}

// poolOf returns the pool for a node.
func (p *prospects) poolOf(s *spec, n *node) *pool {
	if s.avoids(n.name) {
		return &p.avoided
	}
	return &p.preferred
}

// reshape updates the pools for nodes that are new, have left or have another node class.
func (p *prospects) reshape(s *spec, nodes []*node) {
	for _, n := range nodes {
		switch {
		case !n.present:
			p.preferred.remove(n.number)
			p.avoided.remove(n.number)
		case s.names(n.name):
			p.poolOf(s, n).add(n.number)
		}
	}
}

// gather rebuilds the pools from all nodes that the class may use by name.
func (p *prospects) gather(s *spec, f *fleet) {
	p.layout = f.layout
	p.verdicts = nil
	p.avoided.clear()
	if !s.namesAll() {
		p.preferred.clear()
		for _, n := range f.allowedBy(s) {
			p.poolOf(s, n).add(n.number)
		}
		return
	}
	p.preferred.copy(&f.present)
	for _, n := range f.named(s.avoid...) {
		p.preferred.remove(n.number)
		p.avoided.add(n.number)
	}
}
