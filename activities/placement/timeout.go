package placement

import (
	"maps"
	"slices"
	"time"
)

// giveUpAt returns the time at which the request will have waited for its placement time-out while
// no node could ever run it. Time before this queue received the request does not count, because
// the previous queue may have seen nodes that fit.
func (r *request) giveUpAt() time.Time {
	from := r.class.since
	if r.arrived.After(from) {
		from = r.arrived
	}
	return from.Add(r.timeout)
}

// restartTimeouts starts the placement time-outs of a request class that has become impossible, and
// stops those of a class that no longer is.
func (q *Queue) restartTimeouts(s *requestClass) {
	delete(q.timed, s)
	s.deadline = time.Time{}
	if !s.impossible {
		return
	}
	s.since = q.now
	for _, r := range s.waiting {
		q.startTimeout(r)
	}
}

// startTimeout starts the placement time-out of a request in an impossible class. It is a no-op if
// the request has none.
func (q *Queue) startTimeout(r *request) {
	if r.timeout <= 0 {
		return
	}
	s := r.class
	if at := r.giveUpAt(); s.deadline.IsZero() || at.Before(s.deadline) {
		s.deadline = at
	}
	q.timed[s] = struct{}{}
}

// Expect sets whether nodes are about to register. While they are, no placement time-out runs,
// because requests may be waiting for these nodes.
func (q *Queue) Expect(nodes bool) { q.expecting = nodes }

// giveUp ends the requests whose placement time-out has expired.
func (q *Queue) giveUp() {
	if q.expecting {
		for _, s := range slices.Collect(maps.Keys(q.timed)) {
			q.restartTimeouts(s)
		}
		return
	}
	for s := range q.timed {
		if q.now.Before(s.deadline) {
			continue
		}
		// The last reported reason may be out of date.
		reason := q.reasonFor(s)
		for _, r := range slices.Clone(s.waiting) {
			if r.timeout > 0 && !q.now.Before(r.giveUpAt()) {
				r.verdict = reason
				q.unqueue(r)
				r.state = givenUp
				q.report(r)
			}
		}
		delete(q.timed, s)
		s.deadline = time.Time{}
		if !s.impossible {
			continue
		}
		for _, r := range s.waiting {
			q.startTimeout(r)
		}
	}
}

// NextDeadline returns the earliest time at which a pass may give up or place a request although
// nothing else has happened: because a placement time-out expires, a delay is over, or a bench
// ends. ok is false if there is no such time. The time may be too early, if the request concerned
// has been released, but is never too late.
func (q *Queue) NextDeadline() (at time.Time, ok bool) {
	earliest := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	for s := range q.timed {
		earliest(s.deadline)
	}
	if len(q.delayed) > 0 {
		earliest(q.delayed[0].due)
	}
	if len(q.active) > 0 {
		for name, h := range q.healths {
			if q.nodes[name] != nil && !h.until.IsZero() {
				earliest(h.until)
			}
		}
	}
	return at, ok
}
