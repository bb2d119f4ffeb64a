package placement

import (
	"cmp"
	"container/heap"
)

// candidate is a node that a shape fits, as it was when last looked at. During
// a pass a node only ever gets fuller, so a candidate can only have become worse.
type candidate struct {
	n       *node
	avoided bool // to be left out if others will do
	ahead   bool // the request would wait in the node's queue
	base    float64
	pinned  bool
	tasks   int
}

func (c candidate) score(perTask float64) float64 {
	if c.pinned {
		return 0
	}
	return c.base - perTask*float64(c.tasks)
}

func (q *Queue) candidates(s *shape, nodes []*node) candidateHeap {
	out := candidateHeap{perTask: q.opts.Weights.Task}
	for _, n := range nodes {
		if !n.present || !q.fits(s, n) {
			continue
		}
		c := candidate{
			n:       n,
			avoided: s.avoids(n.name),
			ahead:   q.look(s, n).waitsThere(),
			pinned:  s.target.Node != "",
			tasks:   n.tasks(),
		}
		if !c.pinned {
			c.base = Sum(figures(n.snap, s.need.usesGPU, *q.opts.Weights))
		}
		out.list = append(out.list, c)
	}
	heap.Init(&out)
	return out
}

// candidateHeap has the best candidate on top.
type candidateHeap struct {
	list    []candidate
	perTask float64
}

func (h candidateHeap) Len() int { return len(h.list) }

// Less puts nodes that need not be avoided first, then those where the request
// starts at once, then the higher score, fewer tasks and the name.
func (h candidateHeap) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	return cmp.Or(
		last(a.avoided, b.avoided),
		last(a.ahead, b.ahead),
		cmp.Compare(b.score(h.perTask), a.score(h.perTask)),
		cmp.Compare(a.tasks, b.tasks),
		cmp.Compare(a.n.name, b.n.name),
	) < 0
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

func (h candidateHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }

// Push is part of heap.Interface; candidates are only ever taken out.
func (h *candidateHeap) Push(x any) { h.list = append(h.list, x.(candidate)) }

// Pop is part of heap.Interface.
func (h *candidateHeap) Pop() any {
	end := len(h.list) - 1
	c := h.list[end]
	h.list = h.list[:end]
	return c
}
