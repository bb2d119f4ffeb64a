package taskrunner

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	v1 "switchyard/proto/switchyard/v1"
)

// firstBeat is how long after its start a running attempt reports that it has started. Shorter attempts end without a
// heartbeat: their answer says more.
const firstBeat = 200 * time.Millisecond

// beats sends the heartbeats of an attempt. They report that it is alive, learn whether the server still wants it, and
// renew its lease. beats ends the attempt when the lease is lost or when it has not started in time.
func (a *attempt) beats(ctx context.Context, stopping <-chan struct{}) {
	next := a.takenUp.Add(a.terms.beat)
	timer := time.NewTimer(a.untilNext(next))
	defer timer.Stop()
	spawns := a.spawns
	for {
		select {
		case <-ctx.Done():
			return
		case <-stopping:
			a.stop(drained{"the node stops"})
			stopping = nil
		case <-spawns:
			next = executor.Now().Add(firstBeat)
			spawns = nil
		case <-a.news:
			next = executor.Now()
		case <-timer.C:
		}
		now := executor.Now()
		if a.lease.Lost() {
			a.stop(errLeaseLost)
			return
		}
		if a.waiting() && now >= executor.Instant(a.startBy.Load()) {
			// A stuck attempt sends no more heartbeats, so that the server moves it.
			a.stop(errNotStarted)
			return
		}
		if now >= next {
			next = now.Add(a.interval())
			switch err := a.beat(ctx); err {
			case nil:
			case heartbeat.ErrCancelled:
				a.stop(err)
			case heartbeat.ErrGone:
				a.stop(err)
				return
			case errDetached:
				next = executor.Never // the activity that reattaches it restarts the heartbeats
			default:
				next = executor.Now().Add(a.terms.again)
			}
		}
		timer.Reset(a.untilNext(next))
	}
}

// announceAfter is how long an attempt waits for something before its heartbeats report the wait.
const announceAfter = time.Second

// announce adds what the attempt waits for to its heartbeats, unless the wait is short. The caller ends the report by
// calling end.
func (a *attempt) announce(what string) (end func()) {
	announced := make(chan struct{})
	timer := time.AfterFunc(announceAfter, func() {
		defer close(announced)
		a.advance(func(p *v1.ExecuteProgress) { p.Notice = what })
		a.beatNow()
	})
	return func() {
		if timer.Stop() {
			return
		}
		<-announced
		a.advance(func(p *v1.ExecuteProgress) { p.Notice = "" })
	}
}

// beatNow requests an immediate heartbeat.
func (a *attempt) beatNow() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// untilNext returns how long the heartbeat loop may sleep, given when the next heartbeat is due.
func (a *attempt) untilNext(next executor.Instant) time.Duration {
	if a.waiting() {
		next = min(next, executor.Instant(a.startBy.Load()))
	}
	return max(min(next, a.lease.StopAt()).Sub(executor.Now()), 0)
}

// interval returns the time to the next heartbeat. It is short while the server has not yet acknowledged that the
// activity left the attempt.
func (a *attempt) interval() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left == nil {
		return a.terms.again
	}
	return a.terms.beat
}

// beat sends a heartbeat, and renews the lease when the server acknowledges it. The error is one of those of
// heartbeat.Send, errDetached or errReattached.
func (a *attempt) beat(ctx context.Context) error {
	a.mu.Lock()
	token, attended, released := a.token, a.attended, a.released
	a.mu.Unlock()
	if released {
		return errDetached
	}
	progress := proto.CloneOf(a.progress.Load())
	progress.SentAt = timestamppb.Now()
	sent := executor.Now()
	err := heartbeat.Send(ctx, a.node.Client, a.terms.answer, token, progress)
	switch err {
	case nil, heartbeat.ErrCancelled:
		a.lease.Renew(sent)
		a.recordHeartbeat(sent)
		if err == nil && progress.GetSpawned() && a.lasts() {
			a.beginLasting()
		}
	case heartbeat.ErrGone:
		return a.gone(attended)
	}
	return err
}
