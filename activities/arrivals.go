package activities

import (
	"sync"
	"time"

	"switchyard/activities/executor"
)

const (
	// arrivalWindow is for how long, and at most twice that, what was seen counts.
	arrivalWindow = 5 * time.Minute
	// fewArrivals are too few to judge by.
	fewArrivals = 3
)

// arrivals judge whether a task has just left the server, or was long under way:
// in a network that stood still, or in a worker that did. A task that was may be
// running elsewhere by now, and to ask the server whether it is costs it a
// millisecond of its processor.
//
// The server says when it gave the task away, by its clock; the node notes when it
// came, by its own, which nobody sets. The difference is what the clocks differ
// by, and the time under way. What the clocks differ by is the same for all
// tasks, so a difference that is above the smallest one seen lately by no more
// than a tolerance means a way that was longer by no more than that. A difference
// below the smallest one, by more than the tolerance, says that the server's clock
// was set, and everything before says nothing.
//
// The zero value is ready. Its methods may be called from several goroutines.
type arrivals struct {
	mu               sync.Mutex
	since            executor.Instant
	current, earlier leastSeen
}

// leastSeen is the smallest of some differences.
type leastSeen struct {
	count int
	least time.Duration
}

func (l leastSeen) and(o leastSeen) leastSeen {
	switch {
	case l.count == 0:
		return o
	case o.count == 0:
		return l
	}
	return leastSeen{l.count + o.count, min(l.least, o.least)}
}

// fresh takes when the server gave a task away and when it came, and says
// whether it came at once. It is false when that is not known.
func (a *arrivals) fresh(sent time.Time, came executor.Instant, tolerance time.Duration) bool {
	if sent.IsZero() {
		return false
	}
	difference := time.Duration(int64(came) - sent.UnixNano())
	a.mu.Lock()
	defer a.mu.Unlock()
	switch age := came.Sub(a.since); {
	case age > 2*arrivalWindow:
		a.since, a.current, a.earlier = came, leastSeen{}, leastSeen{}
	case age > arrivalWindow:
		a.since, a.current, a.earlier = came, leastSeen{}, a.current
	}
	seen := a.current.and(a.earlier)
	this := leastSeen{1, difference}
	if seen.count > 0 && difference < seen.least-tolerance {
		a.current, a.earlier = this, leastSeen{}
		return false
	}
	a.current = a.current.and(this)
	return seen.count >= fewArrivals && difference <= seen.least+tolerance
}
