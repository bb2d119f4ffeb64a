package placement

import (
	"cmp"
	"container/heap"
)

// candidate is a node that a request class fits, scored when the pass last evaluated it. During a pass a node only fills
// up, so the score of a candidate can only become worse. A node that has improved in the meantime is added as a second
// candidate.
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

// tasksBeside returns the number of tasks on the node that count in the score for the class: the tasks that take a slot,
// or, for a class of remote tasks, the remote tasks.
func (n *node) tasksBeside(s *requestClass) int {
	if s.need.remote {
		return n.remotes
	}
	return n.tasks
}

// base returns the node's score for the class without the part for tasks.
func (n *node) base(s *requestClass) float64 {
	if s.need.gpus > 0 {
		return n.now.scoreGPU
	}
	return n.now.score
}

// betterThan orders candidates: nodes where the request starts immediately come first, then the higher score, then fewer
// tasks, then the name.
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

// ranking is a heap of candidates from one pool with the best one on top.
type ranking struct {
	of      *pool
	list    []candidate
	sample  bool // covers only a random sample of the nodes
	left    int  // picks that remain before a new sample is drawn
	perTask float64
}

// rank rebuilds the class's ranking from the open nodes of a pool, or from a sample of them. It leaves out nodes that the
// class does not fit.
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

// rerank adds a node that may have improved to the ranking. An older candidate for the same node is corrected when it
// reaches the top.
func (q *Queue) rerank(s *requestClass, p *pool, n *node) {
	v := q.look(s, n)
	if !q.fits(&v) {
		q.drop(s, p, n)
		return
	}
	heap.Push(&s.ranking, q.candidate(s, n, v.waitsThere()))
}

// draw adds random nodes of a pool to the class's ranking: nodes where the request starts immediately, or, if there are
// none, nodes where it waits.
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

// Push implements heap.Interface.
func (r *ranking) Push(x any) { r.list = append(r.list, x.(candidate)) }

// Pop implements heap.Interface.
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
