package dag

import "time"

// backoff returns the delay before retry n, counted from 0.
func (p retryPolicy) backoff(n int32) time.Duration {
	// The delay is multiplied step by step rather than with math.Pow, whose last bit differs between machines; a replay may
	// happen on another machine. Floats do not wrap around, so the limit holds for every n.
	wait, longest := float64(p.first), float64(p.longest)
	for range n {
		if wait == 0 || wait >= longest {
			break
		}
		wait *= p.multiplier
	}
	if wait < longest {
		return time.Duration(wait)
	}
	return p.longest
}
