package placement

import (
	"container/heap"
	"slices"
)

// prefetchFactor is the multiple of its slots and cores up to which a node's queue is filled.
const prefetchFactor = 2

// prefetches reports whether the queue may assign the node more than it can run at once, so that
// the node need not wait for the next pass when an attempt ends. A single long attempt forbids it,
// because the requests queued behind it could not move away.
func (q *Queue) prefetches(n *node) bool {
	if !n.measured || n.mean >= q.opts.PrefetchBelow {
		return false
	}
	oldest := n.byAge.Front()
	return oldest == nil || q.now.Sub(oldest.Value.(*request).assignedAt) < q.opts.PrefetchBelow
}

// level is the priority that a pass has reached. All more urgent requests have been placed by then
// or remain waiting.
type level struct {
	number   uint64 // number of this level among all levels of all passes
	priority int32
	counted  bool
	above    []*requestClass // classes with waiting requests of a higher priority, once counted
}

// reach advances the pass to a priority.
func (q *Queue) reach(priority int32) {
	if q.level.priority != priority {
		q.startLevel(priority)
	}
}

func (q *Queue) startLevel(priority int32) {
	clear(q.level.above)
	q.level = level{number: q.level.number + 1, priority: priority, above: q.level.above[:0]}
}

// mayWaitOn reports whether requests of the current level may be put into the node's queue ahead of
// time. A node starts its queued requests in any order, so all of them must have the same priority,
// and they must not keep a more urgent request from the node.
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

// wants reports whether the class could ever use the node.
func (q *Queue) wants(s *requestClass, n *node) bool {
	return n.present && s.names(n.name) && q.couldEverFit(s, n)
}

// keepBack records that the class's next request may not wait on the node for now.
func (q *Queue) keepBack(s *requestClass, n *node) {
	s.reservedFrom = true
	if !n.reserved {
		n.reserved = true
		q.reserved = append(q.reserved, n)
	}
}

// noteFirst compares the first request of a class with its former first request, was. If the
// priority has changed, noteFirst sets reordered, because more requests may then wait on some
// nodes.
func (q *Queue) noteFirst(s *requestClass, was *request) {
	if was == nil || len(q.reserved) == 0 {
		return
	}
	if is := s.first(); is == nil || is.priority != was.priority {
		q.reordered = true
	}
}

// freeReserved clears the reserved nodes and makes every class look at them again.
func (q *Queue) freeReserved() {
	for _, n := range q.reserved {
		n.reserved = false
		q.touch(n)
	}
	q.reserved = q.reserved[:0]
}

// reopenReserved makes a class that has waiting requests again look again at the reserved nodes:
// its requests may have another priority now, and requests that were more urgent may have been
// placed.
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

// reconsider makes the request classes below the current level look again at the reserved nodes,
// because more urgent requests may have been placed elsewhere.
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
