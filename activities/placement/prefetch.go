package placement

import (
	"container/heap"
	"slices"
)

// prefetchFactor is how many times its slots and cores a node is prefetched to.
const prefetchFactor = 2

// prefetches reports whether the node's queue may be filled beyond what it can
// run at once, so that it need not wait for the next pass when an attempt ends.
// One long attempt forbids it: what is queued behind it could not move away.
func (q *Queue) prefetches(n *node) bool {
	if !n.measured || n.mean >= q.opts.PrefetchBelow {
		return false
	}
	oldest := n.byAge.Front()
	return oldest == nil || q.now.Sub(oldest.Value.(*request).assignedAt) < q.opts.PrefetchBelow
}

// level is the priority that a pass has come to. All that is more urgent has
// been placed by then, or stays waiting.
type level struct {
	number   uint64 // of this level among all levels of all passes
	priority int32
	counted  bool
	above    []*requestClass // what waits with a higher priority, once counted
}

// reach moves the pass on to a priority.
func (q *Queue) reach(priority int32) {
	if q.level.priority != priority {
		q.startLevel(priority)
	}
}

func (q *Queue) startLevel(priority int32) {
	clear(q.level.above)
	q.level = level{number: q.level.number + 1, priority: priority, above: q.level.above[:0]}
}

// mayWaitOn reports whether requests of the present level may be put into the
// node's queue ahead of time. What waits there is started in any order, so all
// of it must be equally urgent, and nothing more urgent may be kept from the
// node by it.
func (q *Queue) mayWaitOn(n *node) bool {
	if held := len(n.priorities); held > 1 || held == 1 && n.priorities[q.level.priority] == 0 {
		return false
	}
	if n.wantedAt != q.level.number {
		n.wantedAt, n.wanted = q.level.number, q.wantedFromAbove(n)
	}
	return !n.wanted
}

func (q *Queue) wantedFromAbove(n *node) bool {
	if !q.level.counted {
		q.level.counted = true
		for _, s := range q.active {
			if s.waiting[0].priority > q.level.priority {
				q.level.above = append(q.level.above, s)
			}
		}
	}
	return slices.ContainsFunc(q.level.above, func(s *requestClass) bool { return q.wants(s, n) })
}

// wants reports whether the node could ever meet the class.
func (q *Queue) wants(s *requestClass, n *node) bool {
	return n.present && s.names(n.name) && q.couldEverFit(s, n)
}

// keepBack notes that the class's next request may not wait on the node for now.
func (q *Queue) keepBack(s *requestClass, n *node) {
	s.reservedFrom = true
	if !n.reserved {
		n.reserved = true
		q.reserved = append(q.reserved, n)
	}
}

// noteFirst notes when the highest priority in a request class is not that of the
// request that was its first, because then more may wait on some nodes.
func (q *Queue) noteFirst(s *requestClass, was *request) {
	if was == nil || len(q.reserved) == 0 {
		return
	}
	if is := s.first(); is == nil || is.priority != was.priority {
		q.reordered = true
	}
}

// freeReserved has every class look again at the nodes that were reserved.
func (q *Queue) freeReserved() {
	for _, n := range q.reserved {
		n.reserved = false
		q.touch(n)
	}
	q.reserved = q.reserved[:0]
}

// reopenReserved has a request class for which something waits again look again at the
// nodes that were reserved: what waits now may have another priority, and what
// was more urgent then may have found a place.
func (q *Queue) reopenReserved(s *requestClass) {
	if !s.reservedFrom {
		return
	}
	s.reservedFrom = false
	s.ranking.of = nil
	for _, n := range q.reserved {
		s.preferred.reopen(n.number)
		s.avoided.reopen(n.number)
	}
}

// reconsider has the request classes below the present level look again at the nodes
// that were reserved: what was more urgent may have found a place elsewhere.
func (q *Queue) reconsider(order *classHeap) {
	for _, s := range q.active {
		if s.waiting[0].priority >= q.level.priority {
			continue
		}
		more := false
		for _, n := range q.reserved {
			if v := q.look(s, n); q.wants(s, n) && q.fits(&v) {
				s.preferred.reopen(n.number)
				s.avoided.reopen(n.number)
				more = true
			}
		}
		if !more {
			continue
		}
		s.ranking.of = nil
		if !s.inOrder {
			s.inOrder = true
			heap.Push(order, s)
		}
	}
}
