package placement

import "slices"

// prefetchGuard keeps requests from waiting in the queues of nodes that more urgent requests may
// need, and remembers these nodes until the order of the requests changes.
type prefetchGuard struct {
	eval    *evaluator
	classes *requestClasses
	log     *fleetLog
	nodes   []*node // guarded: kept free of prefetched requests for the sake of priority
	level   level   // of the current pass
	// reordered is set when the highest priority of a request class has changed since nodes were
	// guarded.
	reordered bool
}

// guarded is the part of a node that a prefetchGuard uses.
type guarded struct {
	listed   bool   // in prefetchGuard.nodes
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
func (pg *prefetchGuard) reach(priority int32) {
	if pg.level.priority != priority {
		pg.startLevel(priority)
	}
}

func (pg *prefetchGuard) startLevel(priority int32) {
	clear(pg.level.above)
	pg.level = level{number: pg.level.number + 1, priority: priority, above: pg.level.above[:0]}
}

// mayWaitOn reports whether requests of the current level may be put into the node's queue ahead of
// time. A node starts its queued requests in any order, so all of them must have the same priority,
// and they must not keep a more urgent request from the node.
func (pg *prefetchGuard) mayWaitOn(n *node) bool {
	if held := len(n.priorities); held > 1 || held == 1 && n.priorities[pg.level.priority] == 0 {
		return false
	}
	if n.guarded.wantedAt != pg.level.number {
		n.guarded.wantedAt, n.guarded.wanted = pg.level.number, pg.isWantedFromAbove(n)
	}
	return !n.guarded.wanted
}

func (pg *prefetchGuard) isWantedFromAbove(n *node) bool {
	if !pg.level.counted {
		pg.level.counted = true
		for _, s := range pg.classes.active {
			if s.first().priority > pg.level.priority {
				pg.level.above = append(pg.level.above, s)
			}
		}
	}
	return slices.ContainsFunc(pg.level.above, func(s *requestClass) bool { return pg.couldUse(s, n) })
}

// couldUse reports whether the class could ever use the node.
func (pg *prefetchGuard) couldUse(s *requestClass, n *node) bool {
	return n.present && s.names(n.name) && pg.eval.couldEverFit(s, n)
}

// guardNode records that the class's next request may not wait on the node for now.
func (pg *prefetchGuard) guardNode(s *requestClass, n *node) {
	s.prospects.guarded = true
	if !n.guarded.listed {
		n.guarded.listed = true
		pg.nodes = append(pg.nodes, n)
	}
}

// noteFirstChanged compares the first request of a class with its former first request, was. If the
// priority has changed, noteFirstChanged sets reordered, because more requests may then wait on some
// nodes.
func (pg *prefetchGuard) noteFirstChanged(s *requestClass, was *request) {
	if was == nil || len(pg.nodes) == 0 {
		return
	}
	if is := s.first(); is == nil || is.priority != was.priority {
		pg.reordered = true
	}
}

// noteActive makes a class that has waiting requests again look again at the guarded nodes: its
// requests may have another priority now, and requests that were more urgent may have been placed.
func (pg *prefetchGuard) noteActive(s *requestClass) {
	p := &s.prospects
	if !p.guarded {
		return
	}
	p.guarded = false
	p.ranking.of = nil
	for _, n := range pg.nodes {
		p.reopen(n)
	}
}

// free clears the guarded nodes and makes every class look at them again.
func (pg *prefetchGuard) free() {
	for _, n := range pg.nodes {
		n.guarded.listed = false
		pg.log.noteRoom(n)
	}
	pg.nodes = pg.nodes[:0]
	pg.reordered = false
}

// reconsider makes the request classes below the current level look again at the guarded nodes,
// because more urgent requests may have been placed elsewhere. It adds the lines of the classes that
// fit one to an order.
func (pg *prefetchGuard) reconsider(o *order) {
	pg.reordered = false
	for _, s := range pg.classes.active {
		if s.first().priority >= pg.level.priority {
			continue
		}
		more := false
		for _, n := range pg.nodes {
			if v := pg.eval.viewOf(&s.spec, n); pg.couldUse(s, n) && pg.eval.fits(s, &v) {
				s.prospects.reopen(n)
				more = true
			}
		}
		if !more {
			continue
		}
		s.prospects.ranking.of = nil
		o.open(s)
	}
	o.sort()
}
