package placement

import "cmp"

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

func newCandidate(s *spec, n *node, ahead bool) candidate {
	return candidate{n: n, prefetched: ahead, pinned: s.target.Node != "", tasks: n.tasksBeside(s), base: n.base(s)}
}

// isCurrent reports whether the node has not changed in any respect that counts in the order.
func (c *candidate) isCurrent(s *spec, ahead bool) bool {
	return c.prefetched == ahead && c.tasks == c.n.tasksBeside(s) && c.base == c.n.base(s)
}

// tasksBeside returns the number of tasks on the node that count in the score for the class: the tasks that take a slot,
// or, for a class of remote tasks, the remote tasks.
func (n *node) tasksBeside(s *spec) int {
	if s.need.remote {
		return n.remotes
	}
	return n.tasks
}

// base returns the node's score for the class without the part for tasks.
func (n *node) base(s *spec) float64 {
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
