package placement

import (
	"slices"
	"time"
)

// prefetchFactor is the multiple of its slots and cores up to which a node's queue is filled.
const prefetchFactor = 2

// evaluator decides whether nodes fit requests at the time of the current pass.
type evaluator struct {
	now           time.Time
	prefetchBelow time.Duration
	byName        []filter // for the node's name
	byClass       []filter // for what even an idle node can fail
	byRoom        []filter // for what the node may satisfy at another time
	byCondition   []filter // of byRoom: whether the node accepts such tasks at all
	byAmount      []filter // of byRoom: for what attempts free when they end
}

func newEvaluator(prefetchBelow time.Duration) *evaluator {
	return &evaluator{
		prefetchBelow: prefetchBelow,
		byName:        identityFilters(),
		byClass:       nodeFilters(),
		byRoom:        capacityFilters(),
		byCondition:   slices.DeleteFunc(conditionFilters(), func(f filter) bool { return f.name == refusedFilter }),
		byAmount:      slices.Concat(figureFilters(), ledgerFilters()),
	}
}

// viewOf returns the node as a request sees it. If the queue may prefetch to the node, the view is
// stretched.
func (e *evaluator) viewOf(s *spec, n *node) view {
	v := view{spec: s, n: n, now: e.now, stretch: 1}
	// A request for GPUs or for a NUMA node must not wait behind other requests that hold them, and no member of a gang while
	// others have started.
	if s.need.gpus == 0 && s.need.numa == noNUMA && s.gang == nil && v.waitsThere() && e.mayPrefetch(n) {
		v.stretch = prefetchFactor
	}
	return v
}

// mayPrefetch reports whether the queue may assign the node more than it can run at once, so that
// the node need not wait for the next pass when an attempt ends. A single long attempt forbids it,
// because the requests queued behind it could not move away.
func (e *evaluator) mayPrefetch(n *node) bool { return n.isBrisk(e.prefetchBelow, e.now) }

// couldEverFit reports whether the node could run the class if it were idle.
func (e *evaluator) couldEverFit(s *requestClass, n *node) bool {
	return e.isSuitable(s, &view{spec: &s.spec, n: n, now: e.now, stretch: 1})
}

// isSuitable reports couldEverFit for the node of a view.
func (e *evaluator) isSuitable(s *requestClass, v *view) bool {
	if s.namesSome && !fitsAll(e.byName, v) {
		return false
	}
	known := s.prospects.verdictOf(v.n.class)
	if *known == unknown {
		*known = never
		if fitsAll(e.byClass, v) {
			*known = suits
		}
	}
	return *known == suits
}

// fits reports whether the node of the view can take a request of the class now.
func (e *evaluator) fits(s *requestClass, v *view) bool {
	return e.isSuitable(s, v) && fitsAll(e.byRoom, v)
}

// refusal returns the first reason against a node, whether the node could run the request at
// another time, and whether it fits now.
func (e *evaluator) refusal(v *view) (p phrase, could, fits bool) {
	for _, filters := range [][]filter{e.byName, e.byClass} {
		for _, f := range filters {
			if !f.fits(v) {
				return f.why(v), false, false
			}
		}
	}
	for _, f := range e.byRoom {
		if !f.fits(v) {
			return f.why(v), true, false
		}
	}
	return phrase{}, true, true
}

// couldIfOnline reports whether an offline node could run the request after its return.
func (e *evaluator) couldIfOnline(v *view) bool {
	online := slices.DeleteFunc(slices.Concat(e.byName, e.byClass), func(f filter) bool { return f.name == offlineFilter })
	return fitsAll(online, v)
}

// refusals returns every reason against a node. What is in use does not count on a node that is too small when idle.
func (e *evaluator) refusals(v *view) []string {
	var out []string
	room := e.byRoom
	if !fitsAll(totalFilters(), v) {
		room = e.byCondition
	}
	for _, filters := range [][]filter{e.byName, e.byClass, room} {
		for _, f := range filters {
			if f.fits(v) {
				continue
			}
			p := f.why(v)
			// Several filters may give the same reason.
			if reason := p.verb.one + " " + p.object; !slices.Contains(out, reason) {
				out = append(out, reason)
			}
		}
	}
	return out
}
