package node

import "time"

// shortestInterval is the minimum time between two readings for which a rate is computed, because
// the kernel counts in steps of about 10 ms.
const shortestInterval = 100 * time.Millisecond

// rate computes a figure from the difference between two readings of counters.
type rate[T any] struct {
	at     time.Time
	last   T
	figure float64
}

// next records a reading and returns the figure since the previous one, or first for the first
// reading. between computes the figure and returns false if it cannot. In that case, or if too
// little time has passed, next returns the previous figure.
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
