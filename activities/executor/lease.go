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
// node may be given the task, so nothing of the attempt may be left by then. News renews the lease, and may change how long it is:
// StopAt and KillAt are asked for again each time.
//
//	begin ────────────▶ StopAt ────────▶ KillAt
//	      continues              asked to        nothing
//	                           stop            is left
//
// The caller of Executor.Run renews the lease and ends the context of Run at StopAt. The executor ensures that the
// attempt is over at KillAt, as far as it can even if this process is held up meanwhile. A nil Lease never ends. Its
// methods are safe for concurrent use.
type Lease struct {
	period atomic.Pointer[period]
	lifted atomic.Bool
}

// period is when a lease begins, and how long after that it reaches StopAt and KillAt.
type period struct {
	begin                Instant
	stopAfter, killAfter time.Duration
}

// NewLease returns a lease that begins at an instant, with the durations from there to StopAt and to KillAt.
func NewLease(begin Instant, stopAfter, killAfter time.Duration) *Lease {
	l := &Lease{}
	l.period.Store(&period{begin, stopAfter, killAfter})
	return l
}

// Renew restarts the lease at an instant. An instant before the current beginning is ignored.
func (l *Lease) Renew(begin Instant) {
	l.change(func(p period) period {
		p.begin = max(p.begin, begin)
		return p
	})
}

// RenewUntil restarts the lease so that it ends at killAt, unless it ends later already.
func (l *Lease) RenewUntil(killAt Instant) {
	l.change(func(p period) period {
		p.begin = max(p.begin, killAt.Add(-p.killAfter))
		return p
	})
}

// Resize changes the durations of the lease, which keeps its beginning.
func (l *Lease) Resize(stopAfter, killAfter time.Duration) {
	l.change(func(p period) period { return period{p.begin, stopAfter, killAfter} })
}

// Replace makes the lease one that begins at an instant with other durations. It may end earlier than before.
func (l *Lease) Replace(begin Instant, stopAfter, killAfter time.Duration) {
	l.change(func(period) period { return period{begin, stopAfter, killAfter} })
}

// change replaces the period of the lease. A lost lease stays lost, since whatever enforces it from outside this process
// may already have acted.
func (l *Lease) change(next func(period) period) {
	for l != nil && !l.Lost() {
		before := l.period.Load()
		after := next(*before)
		if l.period.CompareAndSwap(before, &after) {
			return
		}
	}
}

// Length returns the time from the beginning of the lease to KillAt. That of a nil lease is 0.
func (l *Lease) Length() time.Duration {
	if l == nil {
		return 0
	}
	return l.period.Load().killAfter
}

// Begin returns when the lease began. A nil lease began at 0.
func (l *Lease) Begin() Instant {
	if l == nil {
		return 0
	}
	return l.period.Load().begin
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
	p := l.period.Load()
	return p.begin.Add(p.stopAfter)
}

// KillAt returns the instant at which nothing of the attempt may be left.
func (l *Lease) KillAt() Instant {
	if l == nil || l.lifted.Load() {
		return Never
	}
	p := l.period.Load()
	return p.begin.Add(p.killAfter)
}

// Lost reports whether StopAt has passed.
func (l *Lease) Lost() bool { return l != nil && Now() >= l.StopAt() }

// Over reports whether KillAt has passed.
func (l *Lease) Over() bool { return l != nil && Now() >= l.KillAt() }
