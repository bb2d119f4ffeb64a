package placement

import "slices"

// fewNodes is up to how many nodes a pool is searched one by one. A table would
// take 4 bytes for each node of the fleet, and most pinned request classes have one node.
const fewNodes = 32

// pool is a set of nodes that a request class may ever use, by number, in three parts:
//
//	nodes[:ready]      as far as known, the next request starts there at once
//	nodes[ready:open]  as far as known, it waits in the node's queue there
//	nodes[open:]       known to have no room for it
//
// During a pass nodes only get fuller, so they only move to the right; a node
// that has changed starts again at the left. That makes finding a node cheap in
// a full fleet too: each node is found full once, not once for each request.
// It holds numbers rather than nodes, so that moving them about touches no node.
type pool struct {
	nodes []int32
	at    []int32 // index in nodes by number, or -1; nil: there are few nodes
	ready int
	open  int
}

func (p *pool) find(number int) int {
	if p.at == nil {
		return slices.Index(p.nodes, int32(number))
	}
	if number >= len(p.at) {
		return -1
	}
	return int(p.at[number])
}

func (p *pool) swap(i, j int) {
	p.nodes[i], p.nodes[j] = p.nodes[j], p.nodes[i]
	if p.at != nil {
		p.at[p.nodes[i]], p.at[p.nodes[j]] = int32(i), int32(j)
	}
}

// add puts a node in at the left; one that is there already moves there.
func (p *pool) add(number int) {
	if p.reopen(number) {
		return
	}
	p.nodes = append(p.nodes, int32(number))
	if p.at == nil && len(p.nodes) > fewNodes {
		for i, other := range p.nodes {
			p.put(int(other), i)
		}
	} else if p.at != nil {
		p.put(number, len(p.nodes)-1)
	}
	p.reopen(number)
}

func (p *pool) put(number, i int) {
	for len(p.at) <= number {
		p.at = append(p.at, -1)
	}
	p.at[number] = int32(i)
}

// remove takes a node out.
func (p *pool) remove(number int) {
	i := p.find(number)
	if i < 0 {
		return
	}
	p.close(i)
	last := len(p.nodes) - 1
	p.swap(p.find(number), last)
	p.nodes = p.nodes[:last]
	if p.at != nil {
		p.at[number] = -1
	}
}

// reopen moves a node to the left; ok is false when the pool does not have it.
func (p *pool) reopen(number int) (ok bool) {
	i := p.find(number)
	if i < 0 {
		return false
	}
	if i >= p.open {
		p.swap(i, p.open)
		i = p.open
		p.open++
	}
	if i >= p.ready {
		p.swap(i, p.ready)
		p.ready++
	}
	return true
}

// reopenAll moves all nodes to the left.
func (p *pool) reopenAll() { p.ready, p.open = len(p.nodes), len(p.nodes) }

// demote moves the ready node at i to those where the request waits.
func (p *pool) demote(i int) {
	p.ready--
	p.swap(i, p.ready)
}

// close moves the node at i to the right.
func (p *pool) close(i int) {
	if i < p.ready {
		p.demote(i)
		i = p.ready
	}
	if i < p.open {
		p.open--
		p.swap(i, p.open)
	}
}

// copy makes the pool hold what another one does, all of it at the left.
func (p *pool) copy(o *pool) {
	p.nodes = append(p.nodes[:0], o.nodes...)
	p.at = append(p.at[:0], o.at...)
	p.reopenAll()
}

// clear empties the pool.
func (p *pool) clear() { *p = pool{} }
