package placement

import "container/heap"

// picksOfSample is the number of sampled nodes per pick. Only the best quarter of a sample is used
// before a new one is drawn, which is on average as good as the best of eight.
const picksOfSample = 4

// pick returns the best node for a request class at this moment. It considers all nodes, or, if
// there are many, a sample of the nodes where the next request starts immediately. With that many
// nodes the best of a sample is nearly as good as the best of all, and sampling keeps the cost of a
// placement from growing with the fleet. pick returns false only after it has found every node to
// have no room.
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

// best returns the best ranked node of a pool. It returns false if the ranking is exhausted.
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
			// The request would start immediately on some node outside the sample.
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

// admits reports whether the class's next request may be assigned to the node now (ok), and whether
// it would wait there (ahead).
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

// drop closes a node in the pool that the class does not fit now, or removes it from the pool if
// the class could never fit.
func (q *Queue) drop(s *requestClass, p *pool, n *node) {
	if q.couldEverFit(s, n) {
		p.close(p.find(n.number))
	} else {
		p.remove(n.number)
	}
}

// fits reports whether the node can take the request now.
func (q *Queue) fits(v *view) bool {
	return q.couldEverFit(v.requestClass, v.n) && fitsAll(q.capacities, v)
}
