package placement

import (
	"container/heap"
	"math"
	"slices"
)

// Place makes one pass over all waiting requests across runs, the most urgent first and then the
// oldest, and assigns each request that fits a node to the best node. It returns the sorted ids of
// the runs that have something to take, including runs that have not yet taken the result of an
// earlier pass.
//
// A pass costs O(log waiting) and a few looks at nodes for each request that it places, one look at
// each changed node for each request class, and one look at each node for each class that finds it
// full. A pass looks at no node if nothing has changed.
func (q *Queue) Place() []string {
	q.now = q.opts.Now()
	q.admit()
	q.endBenches()
	if q.asked || q.fleetChanged || q.moved || q.reordered {
		q.pass()
	}
	q.giveUp()
	out := make([]string, 0, len(q.reports))
	for r := range q.reports {
		out = append(out, r.id)
	}
	slices.Sort(out)
	return out
}

func (q *Queue) pass() {
	if q.reordered || q.fleetChanged {
		q.freeReserved()
		q.reordered = false
	}
	order := make(classHeap, 0, len(q.active))
	for _, s := range q.active {
		q.sync(s)
		if s.mayFit() {
			s.inOrder = true
			order = append(order, s)
		}
	}
	for _, s := range q.active {
		if !s.inOrder {
			q.fail(s)
		}
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
			s.inOrder = false
			q.fail(s)
			heap.Pop(&order)
			continue
		}
		r := heap.Pop(&s.waiting).(*request)
		q.noteFirst(s, r)
		q.hold(r, c)
		q.report(r)
		if len(s.waiting) > 0 {
			heap.Fix(&order, 0)
			continue
		}
		s.inOrder = false
		q.retire(s)
		// The heap must not compare a request class that has no waiting request.
		last := len(order) - 1
		order.Swap(0, last)
		order = order[:last]
		if last > 0 {
			heap.Fix(&order, 0)
		}
	}
	q.moved, q.asked, q.fleetChanged = false, false, false
}

// fail ends the class's part in a pass: its remaining requests fit no node.
func (q *Queue) fail(s *requestClass) {
	q.settle(s)
	for _, r := range s.fresh {
		r.fresh = false
		if r.state == waiting {
			q.report(r)
		}
	}
	s.fresh = nil
}
