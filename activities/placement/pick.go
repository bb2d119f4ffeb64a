package placement

import "container/heap"

// picksOfSample is how many of the nodes of a sample are taken before there is
// another one: the best quarter, as good on average as the best of eight.
const picksOfSample = 4

// pick returns the best node for a request class as of now: of all nodes, or, while
// there are many, of a sample of those where the next request starts at once.
// With so many nodes the best of some is nearly as good as the best, and it
// keeps the cost of a placement from growing with the fleet. There is none only
// when every node has been found to have no room.
func (q *Queue) pick(s *requestClass) (candidate, bool) {
	for _, p := range []*pool{&s.preferred, &s.avoided} {
		if c, ok := q.pickOf(s, p); ok {
			return c, true
		}
	}
	return candidate{}, false
}

func (q *Queue) pickOf(s *requestClass, p *pool) (candidate, bool) {
	for p.open > 0 {
		r := &s.ranking
		switch {
		case r.of != p || r.sample && r.left == 0 || len(r.list) == 0:
			q.rank(s, p)
			continue
		case !r.sample || r.left > 0:
			r.left--
		}
		if c, ok := q.best(s, p); ok {
			return c, true
		}
	}
	return candidate{}, false
}

// best returns the best of the ranked nodes of a pool.
func (q *Queue) best(s *requestClass, p *pool) (candidate, bool) {
	h := &s.ranking
	for len(h.list) > 0 {
		c := &h.list[0]
		ahead, ok := q.admits(s, c.n)
		switch {
		case !ok:
			q.drop(s, p, c.n)
			heap.Pop(h)
			continue
		case h.sample && ahead && !c.prefetched:
			// It would start at once on some node that is not in the sample.
			p.demote(p.find(c.n.number))
			heap.Pop(h)
			continue
		case c.prefetched == ahead && c.tasks == c.n.tasksBeside(s) && c.base == c.n.base(s):
			return *c, true
		}
		*c = q.candidate(s, c.n, ahead)
		heap.Fix(h, 0)
	}
	return candidate{}, false
}

// admits reports whether the class's next request may be given to a node now, and
// whether it would wait there.
func (q *Queue) admits(s *requestClass, n *node) (ahead, ok bool) {
	v := q.look(s, n)
	if !q.fits(&v) {
		return false, false
	}
	if ahead = v.waitsThere(); ahead && !q.mayWaitOn(n) {
		q.keepBack(s, n)
		return true, false
	}
	return ahead, true
}

// drop moves a node to the right that the class does not fit, or out of the pool
// when it never could.
func (q *Queue) drop(s *requestClass, p *pool, n *node) {
	if q.couldEverFit(s, n) {
		p.close(p.find(n.number))
	} else {
		p.remove(n.number)
	}
}

// fits reports whether a node can take a request now.
func (q *Queue) fits(v *view) bool {
	return q.couldEverFit(v.requestClass, v.n) && fitsAll(q.capacities, v)
}
