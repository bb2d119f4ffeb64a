package placement

import (
	"maps"
	"slices"
	"time"
)

// giveUpAt is when a request has waited for its placement time-out while no
// node could ever meet it. The time before this queue knew the request does not
// count: the queue before it may have seen nodes that fit.
func (r *request) giveUpAt() time.Time {
	from := r.class.since
	if r.arrived.After(from) {
		from = r.arrived
	}
	return from.Add(r.timeout)
}

// restartTimeouts starts the placement time-outs of a request class that has become
// impossible, and stops those of one that no longer is.
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

// startTimeout takes a request of an impossible class into account.
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

// Expect reports whether nodes are about to register, which may be those that
// requests wait for: as long as they are, no placement time-out runs.
func (q *Queue) Expect(nodes bool) { q.expecting = nodes }

// giveUp ends the requests whose placement time-out is over.
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
		// The reason that was reported last may be an old one.
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

// NextDeadline returns the time at which a pass may give something up or place
// something although nothing else has happened: a request that was put aside, or
// one for which a benched node will do. ok is false when there is no such time.
// It may be early, when what it was for has been released, but never late.
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
