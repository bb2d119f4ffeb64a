package placement

// changes is a log of changed nodes. Each class reads on from where it stopped, so that a class
// without waiting requests costs nothing meanwhile.
type changes struct {
	from  uint64 // number of the first entry still in the log
	nodes []*node
}

// note appends a node. When the log has become longer than the fleet, reading it would be no
// cheaper than looking at every node, so note empties it.
func (c *changes) note(n *node, fleet int) {
	if len(c.nodes) > fleet {
		c.from += uint64(len(c.nodes)) + 1
		clear(c.nodes)
		c.nodes = c.nodes[:0]
		return
	}
	c.nodes = append(c.nodes, n)
}

// end returns the number of the next entry.
func (c *changes) end() uint64 { return c.from + uint64(len(c.nodes)) }

// since returns the nodes noted from an entry on. ok is false if some of these entries have been
// dropped.
func (c *changes) since(entry uint64) (nodes []*node, ok bool) {
	if entry < c.from {
		return nil, false
	}
	return c.nodes[entry-c.from:], true
}
