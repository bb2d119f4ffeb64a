package placement

import "slices"

// fewNodes is the pool size up to which a linear search replaces the index table. The table takes 4
// bytes for each node of the fleet, and most pinned request classes have one node.
const fewNodes = 32

// pool is the set of nodes that could ever run a request class, by number, in three parts:
//
//	nodes[:ready]      where, by the latest look, the next request starts immediately
//	nodes[ready:open]  where, by the latest look, it waits in the node's queue
//	nodes[open:]       known to have no room for it
//
// During a pass nodes only fill up, so a node only moves to the right; a changed node starts again
// at the left. This keeps the search cheap in a full fleet, too: the queue finds each node full
// once, not once for each request. The pool holds numbers rather than pointers, so that reordering
// it does not touch the nodes.
type pool struct {
	nodes []int32
	at    []int32 // index in nodes by number, or -1; nil in a small pool
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

// add adds a node at the left, or moves it there if the pool already has it.
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

// remove removes a node from the pool.
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

// reopen moves a node to the left. It returns false if the pool does not have the node.
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

// reopenAll marks all nodes as ready.
func (p *pool) reopenAll() { p.ready, p.open = len(p.nodes), len(p.nodes) }

// demote moves the ready node at index i to the nodes where the request waits.
func (p *pool) demote(i int) {
	p.ready--
	p.swap(i, p.ready)
}

// close moves the node at index i to the nodes without room.
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

// copy replaces the content of the pool with the nodes of another pool, all of them ready.
func (p *pool) copy(o *pool) {
	p.nodes = append(p.nodes[:0], o.nodes...)
	p.at = append(p.at[:0], o.at...)
	p.reopenAll()
}

// clear empties the pool.
func (p *pool) clear() { *p = pool{} }
