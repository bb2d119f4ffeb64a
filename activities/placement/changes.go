package placement

// changes is a log of nodes that have changed. Each class reads on from where
// it stopped, so that request classes for which nothing waits cost nothing meanwhile.
type changes struct {
	from  uint64 // number of the first entry that is kept
	nodes []*node
}

// note appends a node. A log that would be longer than the fleet says no more
// than "look at everything", and starts anew.
func (c *changes) note(n *node, fleet int) {
	if len(c.nodes) > fleet {
		c.from += uint64(len(c.nodes)) + 1
		clear(c.nodes)
		c.nodes = c.nodes[:0]
		return
	}
	c.nodes = append(c.nodes, n)
}

// end is the number of the next entry.
func (c *changes) end() uint64 { return c.from + uint64(len(c.nodes)) }

// since returns the nodes noted from an entry on; ok is false when some of them
// are not kept any more.
func (c *changes) since(entry uint64) (nodes []*node, ok bool) {
	if entry < c.from {
		return nil, false
	}
	return c.nodes[entry-c.from:], true
}
