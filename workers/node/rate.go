package node

import "time"

// shortestInterval is what two readings must lie apart for a figure to be made
// of their difference: the kernel counts in steps of about 10 ms.
const shortestInterval = 100 * time.Millisecond

// rate makes a figure of the difference between two readings of counters.
type rate[T any] struct {
	at     time.Time
	last   T
	figure float64
}

// next takes a reading and returns the figure since the one before; for the
// first reading that is first. between works the figure out, and says false when it
// cannot; then, and when too little time has passed, the figure stays as it was.
func (r *rate[T]) next(at time.Time, now T, first float64, between func(last, now T, elapsed time.Duration) (float64, bool)) float64 {
	if r.at.IsZero() {
		r.at, r.last, r.figure = at, now, first
		return first
	}
	elapsed := at.Sub(r.at)
	if elapsed < shortestInterval {
		return r.figure
	}
	if figure, ok := between(r.last, now, elapsed); ok {
		r.figure = figure
	}
	r.at, r.last = at, now
	return r.figure
}
