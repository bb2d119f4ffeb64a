package executor

import (
	"math"
	"sync/atomic"
	"time"
)

// Instant is a reading, in nanoseconds, of a clock that is never set and that goes
// on while the machine sleeps, where the system has one. All processes of a
// machine read the same clock on Linux; elsewhere each has its own.
type Instant int64

// Add returns the instant after a duration.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from o to i.
func (i Instant) Sub(o Instant) time.Duration { return time.Duration(i - o) }

// Never is an Instant that does not come.
const Never Instant = math.MaxInt64

// Lease is how long an attempt may continue without news from whoever gave it out.
// By its end another node may be given the task, so nothing of the attempt may
// be left by then. News renew it.
//
//	begin ────────────▶ StopAt ────────▶ KillAt
//	      continues              asked to        nothing
//	                           stop            is left
//
// Whoever calls Executor.Run renews the lease, and ends the context of Run at
// StopAt. The executor sees to it that the attempt is over at KillAt, also when
// this process is held up meanwhile, as far as it can. A nil Lease never ends.
// Its methods may be called from several goroutines at once.
type Lease struct {
	stopAfter, killAfter time.Duration
	begin                atomic.Int64
	lifted               atomic.Bool
}

// NewLease returns a lease that begins at an instant, with the time from there
// to StopAt and to KillAt.
func NewLease(begin Instant, stopAfter, killAfter time.Duration) *Lease {
	l := &Lease{stopAfter: stopAfter, killAfter: killAfter}
	l.begin.Store(int64(begin))
	return l
}

// Renew lets the lease begin anew at an instant. An earlier one than before
// changes nothing, and a lease that is lost stays lost: what enforces it from
// outside of this process may have acted.
func (l *Lease) Renew(begin Instant) {
	for l != nil && !l.Lost() {
		old := l.begin.Load()
		if int64(begin) <= old || l.begin.CompareAndSwap(old, int64(begin)) {
			return
		}
	}
}

// Lift ends the bound: the lease does not end any more. It reports false if the lease is lost, which changes nothing.
func (l *Lease) Lift() bool {
	if l.Lost() {
		return false
	}
	if l != nil {
		l.lifted.Store(true)
	}
	return true
}

// StopAt is when the attempt is asked to stop.
func (l *Lease) StopAt() Instant {
	if l == nil || l.lifted.Load() {
		return Never
	}
	return Instant(l.begin.Load()).Add(l.stopAfter)
}

// KillAt is when nothing of the attempt may be left.
func (l *Lease) KillAt() Instant {
	if l == nil || l.lifted.Load() {
		return Never
	}
	return Instant(l.begin.Load()).Add(l.killAfter)
}

// Lost reports whether StopAt has come.
func (l *Lease) Lost() bool { return l != nil && Now() >= l.StopAt() }

// Over reports whether KillAt has come.
func (l *Lease) Over() bool { return l != nil && Now() >= l.KillAt() }

// AwaitKill waits for the end of the grace period, which begins with the call and
// may be ended early, or of the lease, which may be renewed meanwhile, whichever is
// first. It returns false when done is closed before.
func (a Attempt) AwaitKill(done <-chan struct{}) bool {
	grace := time.NewTimer(a.Grace)
	defer grace.Stop()
	for !a.Lease.Over() {
		var over <-chan time.Time
		if a.Lease != nil {
			over = time.After(min(a.Lease.KillAt().Sub(Now()), clockStep))
		}
		select {
		case <-done:
			return false
		case <-grace.C:
			return true
		case <-a.EndGrace:
			return true
		case <-over:
		}
	}
	return true
}

// clockStep bounds how long one timer is trusted: timers stand still while the
// machine sleeps.
const clockStep = time.Second
