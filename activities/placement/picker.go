package placement

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

// picksOfSample is the number of sampled nodes per pick. Only the best quarter of a sample is used
// before a new one is drawn, which is on average as good as the best of eight.
const picksOfSample = 4

// picker finds the best node for the next request of a class.
type picker struct {
	fleet        *fleet
	eval         *evaluator
	guard        *prefetchGuard
	reservations *reservations
	perTask      float64 // Weights.Task
	sampleAbove  int     // Options.SampleAbove
	sample       int     // Options.Sample
	rand         *rand.Rand
	line         *line // that the pass has reached
}

// pick returns the best node for the next request of a line at this moment. It considers all nodes, or, if
// there are many, a sample of the nodes where the next request starts immediately. With that many
// nodes the best of a sample is nearly as good as the best of all, and sampling keeps the cost of a
// placement from growing with the fleet. pick returns false only after it has found every node to
// have no room.
func (pk *picker) pick(l *line) (candidate, bool) {
	s := l.class
	pk.line = l
	for _, p := range []*pool{&s.prospects.preferred, &s.prospects.avoided} {
		if c, ok := pk.pickOf(s, p); ok {
			return c, true
		}
	}
	return candidate{}, false
}

func (pk *picker) pickOf(s *requestClass, p *pool) (candidate, bool) {
	for p.open > 0 {
		r := &s.prospects.ranking
		switch {
		case r.of != p || r.sample && r.left == 0 || len(r.list) == 0:
			pk.rank(s, p)
			continue
		case !r.sample || r.left > 0:
			r.left--
		}
		if c, ok := pk.best(s, p); ok {
			return c, true
		}
	}
	return candidate{}, false
}

// best returns the best ranked node of a pool. It returns false if the ranking is exhausted.
func (pk *picker) best(s *requestClass, p *pool) (candidate, bool) {
	h := &s.prospects.ranking
	for len(h.list) > 0 {
		c := &h.list[0]
		ahead, ok := pk.admits(s, c.n)
		switch {
		case !ok:
			pk.drop(s, p, c.n)
			heap.Pop(h)
			continue
		case h.sample && ahead && !c.prefetched:
			// The request would start immediately on some node outside the sample.
			p.demote(p.find(c.n.number))
			heap.Pop(h)
			continue
		case c.isCurrent(&s.spec, ahead):
			return *c, true
		}
		*c = newCandidate(&s.spec, c.n, ahead)
		heap.Fix(h, 0)
	}
	return candidate{}, false
}

// admits reports whether the class's next request may be assigned to the node now (ok), and whether
// it would wait there (ahead).
func (pk *picker) admits(s *requestClass, n *node) (ahead, ok bool) {
	v := pk.eval.viewOf(&s.spec, n)
	if !pk.eval.fits(s, &v) {
		return false, false
	}
	ahead = v.waitsThere()
	if !pk.reservations.mayStart(pk.line, n, ahead) {
		if !slices.Contains(s.kept, n) {
			s.kept = append(s.kept, n)
		}
		return ahead, false
	}
	if ahead && !pk.guard.mayWaitOn(n) {
		pk.guard.guardNode(s, n)
		return true, false
	}
	return ahead, true
}

// drop closes a node in the pool that the class does not fit now, or removes it from the pool if
// the class could never fit.
func (pk *picker) drop(s *requestClass, p *pool, n *node) {
	if pk.eval.couldEverFit(s, n) {
		p.close(p.find(n.number))
	} else {
		p.remove(n.number)
	}
}

// rank rebuilds the class's ranking from the open nodes of a pool, or from a sample of them. It leaves out nodes that the
// class does not fit.
func (pk *picker) rank(s *requestClass, p *pool) {
	r := &s.prospects.ranking
	*r = ranking{of: p, list: r.list[:0], perTask: pk.perTask}
	if p.open > pk.sampleAbove {
		r.sample = true
		pk.draw(s, p, min(max(pk.sample, picksOfSample*s.waiting), pk.sampleAbove))
		r.left = max(1, len(r.list)/picksOfSample)
	} else {
		for i := p.open - 1; i >= 0; i-- {
			n := pk.fleet.numbered[p.nodes[i]]
			if c, ok := pk.candidateOf(s, p, n); ok {
				r.list = append(r.list, c)
			}
		}
	}
	heap.Init(r)
}

// candidateOf returns the node as a candidate, whatever its queue may hold. It drops the node from
// the pool and returns false if the class does not fit it.
func (pk *picker) candidateOf(s *requestClass, p *pool, n *node) (candidate, bool) {
	v := pk.eval.viewOf(&s.spec, n)
	if !pk.eval.fits(s, &v) {
		pk.drop(s, p, n)
		return candidate{}, false
	}
	return newCandidate(&s.spec, n, v.waitsThere()), true
}

// draw adds random nodes of a pool to the class's ranking: nodes where the request starts immediately, or, if there are
// none, nodes where it waits.
func (pk *picker) draw(s *requestClass, p *pool, size int) {
	r := &s.prospects.ranking
	for i := 0; len(r.list) < size && i < p.ready; {
		p.swap(i, i+pk.rand.IntN(p.ready-i))
		n := pk.fleet.numbered[p.nodes[i]]
		switch ahead, ok := pk.admits(s, n); {
		case !ok:
			pk.drop(s, p, n)
		case ahead:
			p.demote(i)
		default:
			r.list = append(r.list, newCandidate(&s.spec, n, false))
			i++
		}
	}
	if len(r.list) > 0 {
		return
	}
	for i := p.ready; len(r.list) < size && i < p.open; {
		p.swap(i, i+pk.rand.IntN(p.open-i))
		n := pk.fleet.numbered[p.nodes[i]]
		if ahead, ok := pk.admits(s, n); ok {
			r.list = append(r.list, newCandidate(&s.spec, n, ahead))
			i++
		} else {
			pk.drop(s, p, n)
		}
	}
}

// sync applies the changes of the fleet since the last sync to the class.
func (pk *picker) sync(s *requestClass) {
	p, log := &s.prospects, pk.fleet.log
	reshaped, whole := log.shape.since(p.shape)
	touched, all := log.room.since(p.room)
	p.shape, p.room = log.shape.end(), log.room.end()
	if !whole || !all || len(reshaped) > 0 || p.layout != pk.fleet.layout || p.ranking.sample || len(p.ranking.list) > 2*pk.sampleAbove {
		p.ranking.of = nil
	}
	if p.layout != pk.fleet.layout || !whole {
		p.gather(&s.spec, pk.fleet)
	} else {
		p.reshape(&s.spec, reshaped)
	}
	if !all {
		p.reopenAll()
	}
	for _, n := range touched {
		pk.revisit(s, &p.preferred, n)
		pk.revisit(s, &p.avoided, n)
	}
}

// revisit reopens a node of a pool and adds it to the ranking of the pool, because it may have
// improved. An older candidate for the same node is corrected when it reaches the top.
func (pk *picker) revisit(s *requestClass, p *pool, n *node) {
	r := &s.prospects.ranking
	if !p.reopen(n.number) || r.of != p {
		return
	}
	if c, ok := pk.candidateOf(s, p, n); ok {
		heap.Push(r, c)
	}
}
