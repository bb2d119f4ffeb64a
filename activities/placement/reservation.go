package placement

import (
	"container/heap"
	"slices"
)

// reservations keeps requests from waiting in the queues of nodes that more urgent requests may
// need, and remembers these nodes until the order of the requests changes.
type reservations struct {
	eval    *evaluator
	classes *requestClasses
	log     *fleetLog
	nodes   []*node // kept free of prefetched requests for the sake of priority
	level   level   // of the current pass
	// reordered is set when the highest priority of a request class has changed since nodes were
	// reserved.
	reordered bool
}

// reservation is the part of a node that reservations use.
type reservation struct {
	listed   bool   // in reservations.nodes
	wanted   bool   // a more urgent waiting request could use the node
	wantedAt uint64 // number of the level for which wanted was computed
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
func (rs *reservations) reach(priority int32) {
	if rs.level.priority != priority {
		rs.startLevel(priority)
	}
}

func (rs *reservations) startLevel(priority int32) {
	clear(rs.level.above)
	rs.level = level{number: rs.level.number + 1, priority: priority, above: rs.level.above[:0]}
}

// mayWaitOn reports whether requests of the current level may be put into the node's queue ahead of
// time. A node starts its queued requests in any order, so all of them must have the same priority,
// and they must not keep a more urgent request from the node.
func (rs *reservations) mayWaitOn(n *node) bool {
	if held := len(n.priorities); held > 1 || held == 1 && n.priorities[rs.level.priority] == 0 {
		return false
	}
	if n.reservation.wantedAt != rs.level.number {
		n.reservation.wantedAt, n.reservation.wanted = rs.level.number, rs.isWantedFromAbove(n)
	}
	return !n.reservation.wanted
}

func (rs *reservations) isWantedFromAbove(n *node) bool {
	if !rs.level.counted {
		rs.level.counted = true
		for _, s := range rs.classes.active {
			if s.waiting[0].priority > rs.level.priority {
				rs.level.above = append(rs.level.above, s)
			}
		}
	}
	return slices.ContainsFunc(rs.level.above, func(s *requestClass) bool { return rs.couldUse(s, n) })
}

// couldUse reports whether the class could ever use the node.
func (rs *reservations) couldUse(s *requestClass, n *node) bool {
	return n.present && s.names(n.name) && rs.eval.couldEverFit(s, n)
}

// reserveNode records that the class's next request may not wait on the node for now.
func (rs *reservations) reserveNode(s *requestClass, n *node) {
	s.prospects.reserved = true
	if !n.reservation.listed {
		n.reservation.listed = true
		rs.nodes = append(rs.nodes, n)
	}
}

// noteFirstChanged compares the first request of a class with its former first request, was. If the
// priority has changed, noteFirstChanged sets reordered, because more requests may then wait on some
// nodes.
func (rs *reservations) noteFirstChanged(s *requestClass, was *request) {
	if was == nil || len(rs.nodes) == 0 {
		return
	}
	if is := s.first(); is == nil || is.priority != was.priority {
		rs.reordered = true
	}
}

// noteActive makes a class that has waiting requests again look again at the reserved nodes: its
// requests may have another priority now, and requests that were more urgent may have been placed.
func (rs *reservations) noteActive(s *requestClass) {
	p := &s.prospects
	if !p.reserved {
		return
	}
	p.reserved = false
	p.ranking.of = nil
	for _, n := range rs.nodes {
		p.reopen(n)
	}
}

// free clears the reserved nodes and makes every class look at them again.
func (rs *reservations) free() {
	for _, n := range rs.nodes {
		n.reservation.listed = false
		rs.log.noteRoom(n)
	}
	rs.nodes = rs.nodes[:0]
	rs.reordered = false
}

// reconsider makes the request classes below the current level look again at the reserved nodes,
// because more urgent requests may have been placed elsewhere. It adds the classes that fit one to
// order.
func (rs *reservations) reconsider(order *classHeap) {
	rs.reordered = false
	for _, s := range rs.classes.active {
		if s.waiting[0].priority >= rs.level.priority {
			continue
		}
		more := false
		for _, n := range rs.nodes {
			if v := rs.eval.viewOf(&s.spec, n); rs.couldUse(s, n) && rs.eval.fits(s, &v) {
				s.prospects.reopen(n)
				more = true
			}
		}
		if !more {
			continue
		}
		s.prospects.ranking.of = nil
		if !s.inOrder {
			s.inOrder = true
			heap.Push(order, s)
		}
	}
}
