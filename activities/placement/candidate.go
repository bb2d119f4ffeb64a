package placement

import (
	"cmp"
	"container/heap"
)

// candidate is a node that a request class fits, as it was when last looked at. During
// a pass a node only ever gets fuller, so a candidate can only have become worse;
// one that has become better in the meantime is there a second time.
type candidate struct {
	n          *node
	prefetched bool // the request would wait in the node's queue
	base       float64
	pinned     bool
	tasks      int
}

func (c *candidate) score(perTask float64) float64 {
	if c.pinned {
		return 0
	}
	return c.base - perTask*float64(c.tasks)
}

func (q *Queue) candidate(s *requestClass, n *node, ahead bool) candidate {
	return candidate{n: n, prefetched: ahead, pinned: s.target.Node != "", tasks: n.tasksBeside(s), base: n.base(s)}
}

// tasksBeside returns how many tasks of the node the score for the class counts: those that take a slot, or those that run
// elsewhere if those of the class do.
func (n *node) tasksBeside(s *requestClass) int {
	if s.need.remote {
		return n.remotes
	}
	return n.tasks
}

// base is the node's score for the class without tasks.
func (n *node) base(s *requestClass) float64 {
	if s.need.gpus > 0 {
		return n.now.scoreGPU
	}
	return n.now.score
}

// betterThan puts nodes first where the request starts at once, then the higher
// score, fewer tasks and the name.
func (c *candidate) betterThan(o *candidate, perTask float64) bool {
	if c.prefetched != o.prefetched {
		return o.prefetched
	}
	return cmp.Or(
		cmp.Compare(o.score(perTask), c.score(perTask)),
		cmp.Compare(c.tasks, o.tasks),
		cmp.Compare(c.n.name, o.n.name),
	) < 0
}

// ranking is a heap with the best of some nodes of a pool on top.
type ranking struct {
	of      *pool
	list    []candidate
	sample  bool // it has some of the nodes only
	left    int  // picks from a sample
	perTask float64
}

// rank makes the class's ranking of the open nodes of a pool, or of a sample of
// them. It leaves out those that the class does not fit.
func (q *Queue) rank(s *requestClass, p *pool) {
	r := &s.ranking
	*r = ranking{of: p, list: r.list[:0], perTask: q.opts.Weights.Task}
	if p.open > q.opts.SampleAbove {
		r.sample = true
		size := min(max(q.opts.Sample, picksOfSample*len(s.waiting)), q.opts.SampleAbove)
		q.draw(s, p, size)
		r.left = max(1, len(r.list)/picksOfSample)
	} else {
		for i := p.open - 1; i >= 0; i-- {
			n := q.numbered[p.nodes[i]]
			v := q.look(s, n)
			if !q.fits(&v) {
				q.drop(s, p, n)
				continue
			}
			r.list = append(r.list, q.candidate(s, n, v.waitsThere()))
		}
	}
	heap.Init(r)
}

// rerank adds a node to the ranking that may have become better. What was
// ranked of it before is found out to be wrong when it comes to the top.
func (q *Queue) rerank(s *requestClass, p *pool, n *node) {
	v := q.look(s, n)
	if !q.fits(&v) {
		q.drop(s, p, n)
		return
	}
	heap.Push(&s.ranking, q.candidate(s, n, v.waitsThere()))
}

// draw adds random nodes of a pool to the class's ranking: of those where the
// request starts at once, or, when there are none, of those where it waits.
func (q *Queue) draw(s *requestClass, p *pool, size int) {
	r := &s.ranking
	for i := 0; len(r.list) < size && i < p.ready; {
		p.swap(i, i+q.opts.Rand.IntN(p.ready-i))
		n := q.numbered[p.nodes[i]]
		switch ahead, ok := q.admits(s, n); {
		case !ok:
			q.drop(s, p, n)
		case ahead:
			p.demote(i)
		default:
			r.list = append(r.list, q.candidate(s, n, false))
			i++
		}
	}
	if len(r.list) > 0 {
		return
	}
	for i := p.ready; len(r.list) < size && i < p.open; {
		p.swap(i, i+q.opts.Rand.IntN(p.open-i))
		n := q.numbered[p.nodes[i]]
		if ahead, ok := q.admits(s, n); ok {
			r.list = append(r.list, q.candidate(s, n, ahead))
			i++
		} else {
			q.drop(s, p, n)
		}
	}
}

func (r *ranking) Len() int           { return len(r.list) }
func (r *ranking) Less(i, j int) bool { return r.list[i].betterThan(&r.list[j], r.perTask) }
func (r *ranking) Swap(i, j int)      { r.list[i], r.list[j] = r.list[j], r.list[i] }

// Push is part of heap.Interface.
func (r *ranking) Push(x any) { r.list = append(r.list, x.(candidate)) }

// Pop is part of heap.Interface.
func (r *ranking) Pop() any {
	end := len(r.list) - 1
	c := r.list[end]
	r.list = r.list[:end]
	return c
}

func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
