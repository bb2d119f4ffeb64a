package placement

import (
	"slices"
	"time"
)

const (
	// mostIdle is the number of idle request classes that the queue keeps.
	mostIdle = 256
	// mostIdleNodes bounds the number of nodes in idle classes. Each takes 8 bytes.
	mostIdleNodes = 1 << 20
)

// activate marks the class as having waiting requests.
func (q *Queue) activate(s *requestClass) {
	if s.active >= 0 {
		return
	}
	s.active = len(q.active)
	q.active = append(q.active, s)
	q.reopenReserved(s)
}

// retire marks the class as idle.
func (q *Queue) retire(s *requestClass) {
	end := len(q.active) - 1
	q.active[s.active] = q.active[end]
	q.active[s.active].active = s.active
	q.active[end] = nil
	q.active = q.active[:end]
	s.active = -1
	delete(q.timed, s)
	for _, r := range s.fresh {
		r.fresh = false
	}
	s.fresh = nil
	s.reason, s.reported, s.impossible = "", "", false
	s.deadline, s.reportAt = time.Time{}, time.Time{}
	q.rests++
	s.idle = q.rests
	if len(q.classes)-len(q.active) > 2*mostIdle {
		q.forgetClasses()
	}
}

// forgetClasses drops the request classes that have been idle for longest. It keeps half of the
// maximum, so that it seldom runs.
func (q *Queue) forgetClasses() {
	var idle []*requestClass
	for _, s := range q.classes {
		if s.active < 0 {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b *requestClass) int { return int(int64(b.idle) - int64(a.idle)) })
	nodes := 0
	for i, s := range idle {
		nodes += len(s.preferred.nodes)
		if i >= mostIdle || nodes > mostIdleNodes {
			delete(q.classes, s.key)
		}
	}
}

// sync applies the changes of the nodes since the last sync to the class.
func (q *Queue) sync(s *requestClass) {
	reshaped, whole := q.reshaped.since(s.reshaped)
	touched, all := q.touched.since(s.touched)
	s.reshaped, s.touched = q.reshaped.end(), q.touched.end()
	if !whole || !all || len(reshaped) > 0 || s.layout != q.layout || s.ranking.sample || len(s.ranking.list) > 2*q.opts.SampleAbove {
		s.ranking.of = nil
	}
	if s.layout != q.layout || !whole {
		q.gather(s)
	} else {
		q.reshape(s, reshaped)
	}
	if !all {
		s.preferred.reopenAll()
		s.avoided.reopenAll()
	}
	for _, n := range touched {
		for _, p := range []*pool{&s.preferred, &s.avoided} {
			if p.reopen(n.number) && s.ranking.of == p {
				q.rerank(s, p, n)
			}
		}
	}
}

// reshape updates the pools for nodes that are new, have left or have another node class.
func (q *Queue) reshape(s *requestClass, nodes []*node) {
	for _, n := range nodes {
		switch {
		case !n.present:
			s.preferred.remove(n.number)
			s.avoided.remove(n.number)
		case s.names(n.name):
			s.poolOf(n).add(n.number)
		}
	}
}

// gather rebuilds the pools from all nodes that the class may use by name.
func (q *Queue) gather(s *requestClass) {
	s.layout = q.layout
	s.nodeClasses = nil
	s.avoided.clear()
	if !s.namesAll() {
		s.preferred.clear()
		for _, n := range q.within(s) {
			s.poolOf(n).add(n.number)
		}
		return
	}
	s.preferred.copy(&q.all)
	for _, n := range q.named(s.avoid...) {
		s.preferred.remove(n.number)
		s.avoided.add(n.number)
	}
}

// poolOf returns the pool of the class for a node.
func (s *requestClass) poolOf(n *node) *pool {
	if s.avoids(n.name) {
		return &s.avoided
	}
	return &s.preferred
}

// within returns the present nodes that a request class may use by name.
func (q *Queue) within(s *requestClass) []*node {
	if s.targetErr != nil {
		return nil
	}
	if s.target.Node != "" {
		return q.named(s.target.Node)
	}
	if allowed := s.constraints.GetAllowedNodes(); len(allowed) > 0 {
		return q.named(allowed...)
	}
	return q.listed
}

// named returns the present nodes among the given names.
func (q *Queue) named(names ...string) []*node {
	var out []*node
	for _, name := range names {
		if n := q.nodes[name]; n != nil && n.present {
			out = append(out, n)
		}
	}
	return out
}
