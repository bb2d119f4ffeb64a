package placement

import (
	"maps"
	"slices"
	"time"
)

// classTimeout is the state of the placement time-outs of a request class.
type classTimeout struct {
	since    time.Time // when the class became impossible
	deadline time.Time // no request is given up before it; zero means no time-out
}

// giveUpAt returns the time at which the request will have waited for its placement time-out while
// no node could ever run it. Time before this queue received the request does not count, because
// the previous queue may have seen nodes that fit.
func (r *request) giveUpAt() time.Time {
	from := r.class.timeout.since
	if r.arrived.After(from) {
		from = r.arrived
	}
	return from.Add(r.timeout)
}

// timeouts runs the placement time-outs of the impossible request classes.
type timeouts struct {
	classes map[*requestClass]struct{} // with a running time-out
	// expecting is set while nodes are about to register. While they are, no time-out runs, because
	// requests may be waiting for these nodes.
	expecting bool
}

func newTimeouts() *timeouts { return &timeouts{classes: map[*requestClass]struct{}{}} }

// restart starts the time-outs of a request class that has become impossible, and stops those of a
// class that no longer is.
func (t *timeouts) restart(s *requestClass, now time.Time) {
	t.stop(s)
	if !s.notice.impossible {
		return
	}
	s.timeout.since = now
	t.startAll(s)
}

// startAll starts the time-outs of the waiting requests of an impossible class.
func (t *timeouts) startAll(s *requestClass) {
	for r := range s.all() {
		t.start(r)
	}
}

// start starts the time-out of a request in an impossible class. It is a no-op if the request has
// none.
func (t *timeouts) start(r *request) {
	if r.timeout <= 0 {
		return
	}
	s := r.class
	if at := r.giveUpAt(); s.timeout.deadline.IsZero() || at.Before(s.timeout.deadline) {
		s.timeout.deadline = at
	}
	t.classes[s] = struct{}{}
}

// stop ends the placement time-outs of a class's requests.
func (t *timeouts) stop(s *requestClass) {
	delete(t.classes, s)
	s.timeout.deadline = time.Time{}
}

// due returns the classes some of whose requests may be given up now. While nodes are expected,
// due returns none and starts all time-outs again.
func (t *timeouts) due(now time.Time) []*requestClass {
	if len(t.classes) == 0 {
		return nil // most passes do nothing else
	}
	if t.expecting {
		for _, s := range slices.Collect(maps.Keys(t.classes)) {
			t.restart(s, now)
		}
		return nil
	}
	var out []*requestClass
	for s := range t.classes {
		if !now.Before(s.timeout.deadline) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *requestClass) int { return a.active - b.active })
	return out
}

// expired returns the waiting requests of a class whose time-out has expired.
func (s *requestClass) expired(now time.Time) []*request {
	var out []*request
	for r := range s.all() {
		if r.timeout > 0 && !now.Before(r.giveUpAt()) {
			out = append(out, r)
		}
	}
	return out
}

// next returns the earliest deadline. ok is false if no time-out runs.
func (t *timeouts) next() (at time.Time, ok bool) {
	for s := range t.classes {
		if !ok || s.timeout.deadline.Before(at) {
			at, ok = s.timeout.deadline, true
		}
	}
	return at, ok
}
