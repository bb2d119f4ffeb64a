package placement

import (
	"container/heap"
	"iter"
	"time"
)

// requestClass is a set of waiting requests that ask for exactly the same, so that a look at a node
// holds for all of them, and all have the same reason. The queue keeps a class for a while after its
// last request, because finding the nodes that could ever run it is costly.
type requestClass struct {
	spec
	key       string
	lines     lineHeap // the one with the highest priority first, and then that with the oldest request
	byKey     map[lineKey]*line
	waiting   int        // number of requests in the lines
	fresh     []*request // requests without a reported reason
	active    int        // index in requestClasses.active, or -1
	idleSince uint64     // value of requestClasses.retirements when the class became idle
	inOrder   bool       // may still be placed in the current pass
	// soonest is the expected duration of the shortest line that reservations have kept from some node in the current pass,
	// or 0.
	soonest     time.Duration
	kept        []*node    // from which reservations have kept a line
	tried       []*machine // that a gang left again because not all members had room
	isReserving bool       // in reservations.update
	prospects   prospects
	notice      notice
	timeout     classTimeout
}

func newRequestClass(key string, s spec) *requestClass {
	return &requestClass{spec: s, key: key, byKey: map[lineKey]*line{}, active: -1}
}

// push adds a request to its line, which it creates if necessary. A gang has one line, whatever its members ask for.
func (s *requestClass) push(r *request) {
	key := lineKey{account: r.run.account, task: baseName(r.task), priority: r.priority}
	l := s.byKey[key]
	if s.gang != nil && len(s.lines) > 0 {
		l = s.lines[0]
	}
	if l == nil {
		l = &line{key: key, class: s, account: key.account, priority: r.priority, kind: r.kind()}
		s.byKey[key] = l
		heap.Push(&l.requests, r)
		heap.Push(&s.lines, l)
	} else {
		heap.Push(&l.requests, r)
		heap.Fix(&s.lines, l.index)
	}
	r.line = l
	s.waiting++
	s.freshen(r)
}

// drop removes a waiting request.
func (s *requestClass) drop(r *request) {
	l := r.line
	r.line = nil
	s.waiting--
	if len(l.requests) == 1 {
		// The last request is not removed from the line, which must have one while it is compared.
		heap.Remove(&s.lines, l.index)
		delete(s.byKey, l.key)
		l.requests = nil
		return
	}
	heap.Remove(&l.requests, r.index)
	heap.Fix(&s.lines, l.index)
}

// reopenKept makes the class look again at the nodes from which reservations have kept it.
func (s *requestClass) reopenKept() {
	for _, n := range s.kept {
		s.prospects.reopen(n)
	}
	if len(s.kept) > 0 {
		s.kept, s.prospects.ranking.of = s.kept[:0], nil
	}
}

// first returns the oldest waiting request of the highest priority, or nil if none waits.
func (s *requestClass) first() *request {
	if len(s.lines) == 0 {
		return nil
	}
	return s.lines[0].first()
}

// all returns all waiting requests.
func (s *requestClass) all() iter.Seq[*request] {
	return func(yield func(*request) bool) {
		for _, l := range s.lines {
			for _, r := range l.requests {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// freshen makes the next pass report the request's reason, even if it was reported before.
func (s *requestClass) freshen(r *request) {
	if !r.fresh {
		r.fresh = true
		s.fresh = append(s.fresh, r)
	}
}

// takeFresh returns the requests without a reported reason and marks them as reported.
func (s *requestClass) takeFresh() []*request {
	fresh := s.fresh
	for _, r := range fresh {
		r.fresh = false
	}
	s.fresh = nil
	return fresh
}
