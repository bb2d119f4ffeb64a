package executor

import (
	"math"
	"sync/atomic"
	"time"
)

// Instant is a reading, in nanoseconds, of a clock that is never set and, where the system supports it, keeps
// counting while the machine sleeps. On Linux all processes of a machine read the same clock; elsewhere each process
// has its own.
type Instant int64

// Add returns the instant after a duration.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from o to i.
func (i Instant) Sub(o Instant) time.Duration { return time.Duration(i - o) }

// Never is an Instant in the infinite future.
const Never Instant = math.MaxInt64

// Lease is how long an attempt may continue without news from the scheduler that dispatched it. When it ends, another
// node may be given the task, so nothing of the attempt may be left by then. News renews the lease.
//
//	begin ────────────▶ StopAt ────────▶ KillAt
//	      continues              asked to        nothing
//	                           stop            is left
//
// The caller of Executor.Run renews the lease and ends the context of Run at StopAt. The executor ensures that the
// attempt is over at KillAt, as far as it can even if this process is held up meanwhile. A nil Lease never ends. Its
// methods are safe for concurrent use.
type Lease struct {
	stopAfter, killAfter time.Duration
	begin                atomic.Int64
	lifted               atomic.Bool
}

// NewLease returns a lease that begins at an instant, with the durations from there to StopAt and to KillAt.
func NewLease(begin Instant, stopAfter, killAfter time.Duration) *Lease {
	l := &Lease{stopAfter: stopAfter, killAfter: killAfter}
	l.begin.Store(int64(begin))
	return l
}

// Renew restarts the lease at an instant. An instant before the current beginning is ignored. A lost lease stays
// lost, since whatever enforces it from outside this process may already have acted.
func (l *Lease) Renew(begin Instant) {
	for l != nil && !l.Lost() {
		old := l.begin.Load()
		if int64(begin) <= old || l.begin.CompareAndSwap(old, int64(begin)) {
			return
		}
	}
}

// Lift removes the bound, so the lease never ends. It returns false if the lease is already lost, and then does
// nothing.
func (l *Lease) Lift() bool {
	if l.Lost() {
		return false
	}
	if l != nil {
		l.lifted.Store(true)
	}
	return true
}

// StopAt returns the instant at which the attempt is asked to stop.
func (l *Lease) StopAt() Instant {
	if l == nil || l.lifted.Load() {
		return Never
	}
	return Instant(l.begin.Load()).Add(l.stopAfter)
}

// KillAt returns the instant at which nothing of the attempt may be left.
func (l *Lease) KillAt() Instant {
	if l == nil || l.lifted.Load() {
		return Never
	}
	return Instant(l.begin.Load()).Add(l.killAfter)
}

// Lost reports whether StopAt has passed.
func (l *Lease) Lost() bool { return l != nil && Now() >= l.StopAt() }

// Over reports whether KillAt has passed.
func (l *Lease) Over() bool { return l != nil && Now() >= l.KillAt() }
