package taskrunner

import (
	"context"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
)

// The older an attempt is, the more is lost with it, and the longer its node may be silent. The node raises the heartbeat
// time-out of the running activity, which stays the only judge of the attempt:
//
//	time-out on the server  15 s ─── raise ──────────────────────────── 75 s ─── raise ──▶ ... up to ExecuteRequest.max_lease
//	lease of the attempt    ends 12 s after a heartbeat ── 60 s later ── ends 30 s after a heartbeat ──▶ ...
//
// What the server has acknowledged may be lost with the newest state of its database. So the attempt uses a raise only after a
// while, when the server still confirms it, and its lease ends before the time-out even if the server has lost the newest
// heartbeats. A raise without an answer only leaves the attempt with a lease that is shorter than it could be.
//
// The time-out belongs to the activity. An activity that reattaches the attempt begins with its own, which the attempt takes over
// before it answers to that activity (see attendance.reattach).

// These durations are multiples of the heartbeat time-out that an activity begins with, usually 15 s.
const (
	growthPerAge   = 4 // the age of an attempt, divided by its time-out
	firstRaise     = 5 // the least time-out that is worth a raise: a lower one would not lengthen the lease
	raiseUsedAfter = 4 // from the acknowledgement of a raise to its use
	raiseAhead     = 6 // the age for which a raise is meant is that much higher than at the raise, because it is used later
)

// raiseFactor is the least factor between two time-outs.
const raiseFactor = 1.25

// leaseEnds returns when an attempt is asked to stop and when nothing of it may be left, counted from the sending of its newest
// acknowledged heartbeat. timeout is the heartbeat time-out of its activity, which began with another one, base. sure is how much
// earlier the newest heartbeat was sent that the server cannot have lost.
func leaseEnds(timeout, base, sure time.Duration) (stop, kill time.Duration) {
	if timeout <= base {
		return timeout * 6 / 10, timeout * 8 / 10
	}
	kill = max(base*8/10, min(timeout*3/4, timeout-base/3-sure))
	return max(base*6/10, min(timeout*6/10, kill-base*2/3)), kill
}

// acknowledged holds when heartbeats were sent that the server has acknowledged: the newest, and those back to one that it cannot
// have lost.
type acknowledged []executor.Instant

// surely returns how much earlier than the newest heartbeat one was sent that the server cannot have lost.
func (k acknowledged) surely(base time.Duration) time.Duration {
	least := lostBeats(base) + base/3
	if len(k) == 0 {
		return least
	}
	return max(k[len(k)-1].Sub(k[0]), least)
}

// add records the newest heartbeat of an activity that began with a time-out. If heartbeats before it were not acknowledged, the
// server may have crashed, and then it has lost the last ones before.
func (k *acknowledged) add(sent executor.Instant, base time.Duration) {
	if n := len(*k); n > 1 && sent.Sub((*k)[n-1]) > base/3 {
		*k = (*k)[:1]
	}
	*k = append(*k, sent)
	for len(*k) > 1 && sent.Sub((*k)[1]) >= lostBeats(base) {
		*k = (*k)[1:]
	}
}

// lostBeats returns for how long back a server may lose heartbeats that it has acknowledged.
func lostBeats(base time.Duration) time.Duration { return base * 7 / 3 }

// growth decides when the time-out of an activity is raised and when its attempt may use the raise. It is not safe for
// concurrent use.
type growth struct {
	// activity is the number of the activity, as in activityRef.
	activity int
	// base is the time-out with which the activity began, and limit the highest one. A limit of 0 allows no raise.
	base, limit time.Duration
	// inForce is the newest time-out that the server has acknowledged, and inUse the one by which the lease of the attempt ends.
	inForce, inUse time.Duration
	// from is when the newest raise may be used, and again when the server may be called next.
	from, again executor.Instant
}

// next returns the time-out to set for an attempt of an age. It returns 0 if there is nothing to set. confirm is set if the
// server must first say whether it still has the newest raise.
func (g *growth) next(now executor.Instant, age time.Duration) (timeout time.Duration, confirm bool) {
	switch {
	case g.limit == 0 || now < g.again:
		return 0, false
	case g.inForce > g.inUse:
		return 0, now >= g.from
	}
	timeout = min((age+raiseAhead*g.base)/growthPerAge, g.limit)
	isLast := timeout == g.limit && timeout > g.inForce
	if timeout < firstRaise*g.base || !isLast && float64(timeout) < raiseFactor*float64(g.inForce) {
		return 0, false
	}
	return timeout, false
}

// raised records that the server has set a time-out.
func (g *growth) raised(timeout time.Duration, now executor.Instant) {
	g.inForce, g.from = timeout, now.Add(raiseUsedAfter*g.base)
}

// confirmed records the time-out that the server has. The attempt may then use inUse.
func (g *growth) confirmed(timeout time.Duration) {
	g.inForce = min(g.inForce, timeout)
	g.inUse = g.inForce
}

// failed records that the server has not answered.
func (g *growth) failed(now executor.Instant) { g.again = now.Add(g.base * 2 / 3) }

// grow raises the time-out of the activity that waits for the attempt, and lengthens the lease by an earlier raise. It is called
// when the server has just acknowledged a heartbeat of the activity.
func (h *heartbeats) grow(ctx context.Context, of activityRef) {
	g := &h.growth
	if g.activity != of.number {
		*g = growth{activity: of.number, base: of.heartbeat, limit: g.limit, inForce: of.heartbeat, inUse: of.heartbeat}
	}
	since := executor.Instant(h.since.Load())
	if since == 0 {
		return
	}
	timeout, confirm := g.next(executor.Now(), executor.Now().Sub(since))
	if timeout == 0 && !confirm {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, h.terms.answer)
	defer cancel()
	var got time.Duration
	var err error
	if confirm {
		got, err = heartbeat.TimeoutOf(ctx, h.client, of.Activity)
	} else {
		got, err = heartbeat.SetTimeout(ctx, h.client, of.Activity, timeout)
	}
	switch {
	case err == heartbeat.ErrRefused:
		g.limit = 0
		h.refused()
	case err != nil:
		g.failed(executor.Now())
	case confirm:
		g.confirmed(got)
		h.attendance.use(of, g.inUse)
	default:
		g.raised(got, executor.Now())
	}
}
