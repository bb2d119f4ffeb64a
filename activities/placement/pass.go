package placement

import (
	"container/heap"
	"math"
	"slices"
)

// Place makes one pass over everything that waits, the most urgent first and
// then the oldest, across runs; whatever fits a node is given to the best one.
// It returns the runs that have something to take, new ones and those that
// have not taken what a former pass had for them, sorted.
//
// A pass costs O(log waiting) for each request that it places, and one look at
// the nodes for each shape of request: at all of them when the fleet has
// changed or the shape is new, else at those where room has appeared. A pass
// for which nothing has changed looks at nothing.
func (q *Queue) Place() []string {
	q.now = q.opts.Now()
	if q.asked || q.fleetChanged || len(q.freed) > 0 || q.reordered {
		q.pass()
	}
	q.giveUp()
	out := make([]string, 0, len(q.news))
	for r := range q.news {
		out = append(out, r.id)
	}
	slices.Sort(out)
	return out
}

func (q *Queue) pass() {
	if q.reordered || q.fleetChanged {
		q.freeKeptBack()
		q.reordered = false
	}
	order := make(shapeHeap, 0, len(q.shapes))
	for _, s := range q.shapes {
		switch {
		case q.fleetChanged || !s.failed:
			s.candidates = q.candidates(s, q.within(s))
		case len(q.freed) > 0:
			s.candidates = q.candidates(s, q.freed)
		}
		if len(s.candidates.list) == 0 {
			q.fail(s)
			continue
		}
		order = append(order, s)
	}
	heap.Init(&order)
	q.startLevel(math.MaxInt32)
	for {
		if q.reordered && (len(order) == 0 || order[0].waiting[0].priority < q.level.priority) {
			q.reordered = false
			q.reconsider(&order)
		}
		if len(order) == 0 {
			break
		}
		s := order[0]
		q.reach(s.waiting[0].priority)
		c, ok := q.pick(s)
		if !ok {
			q.fail(s)
			heap.Pop(&order)
			continue
		}
		r := heap.Pop(&s.waiting).(*request)
		q.noteFirst(s, r)
		q.hold(r, c.n, c.score(q.opts.Weights.Task))
		q.tell(r)
		if len(s.waiting) > 0 {
			heap.Fix(&order, 0)
			continue
		}
		delete(q.shapes, s.key)
		delete(q.timed, s)
		// The heap may not look at a shape without a request.
		last := len(order) - 1
		order.Swap(0, last)
		order = order[:last]
		if last > 0 {
			heap.Fix(&order, 0)
		}
	}
	for _, n := range q.freed {
		n.freed = false
	}
	q.freed, q.asked, q.fleetChanged = nil, false, false
}

// within returns the present nodes that a shape need look at.
func (q *Queue) within(s *shape) []*node {
	if s.targetErr != nil {
		return nil
	}
	if s.target.Node == "" {
		return q.present
	}
	if n := q.nodes[s.target.Node]; n != nil && n.present {
		return []*node{n}
	}
	return nil
}

func (q *Queue) fits(s *shape, n *node) bool {
	v := q.look(s, n)
	for _, f := range q.filters {
		if !f.fits(v) {
			return false
		}
	}
	return true
}

// pick returns the best candidate of a shape as of now.
func (q *Queue) pick(s *shape) (candidate, bool) {
	h := &s.candidates
	for len(h.list) > 0 {
		c := &h.list[0]
		if !q.fits(s, c.n) {
			heap.Pop(h)
			continue
		}
		ahead, tasks := q.look(s, c.n).waitsThere(), c.n.tasks()
		if ahead && !q.mayWaitOn(c.n) {
			q.keepBack(c.n)
			heap.Pop(h)
			continue
		}
		if c.ahead == ahead && c.tasks == tasks {
			return *c, true
		}
		c.ahead, c.tasks = ahead, tasks
		heap.Fix(h, 0)
	}
	return candidate{}, false
}

// fail ends a shape's part in a pass: what still waits of it fits nowhere.
func (q *Queue) fail(s *shape) {
	s.candidates = candidateHeap{}
	// Where only freed nodes were looked at, the others stand as they stood.
	if !s.failed || q.fleetChanged {
		text, impossible := q.reasonFor(s)
		q.settle(s, text, impossible)
	}
	s.failed = true
	for _, r := range s.fresh {
		r.fresh = false
		if r.state == waiting {
			q.tell(r)
		}
	}
	s.fresh = nil
}
