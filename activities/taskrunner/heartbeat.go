package taskrunner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
)

const (
	// firstBeat is how long after its start a running attempt reports that it has started. Shorter attempts end without a
	// heartbeat: their answer says more.
	firstBeat = 200 * time.Millisecond
	// prepareSilence is the longest time between two signs that something the attempt needs, such as an image, is being
	// fetched, or between the last sign and the start of its process.
	prepareSilence = 6 * time.Minute
)

// heartbeats sends the heartbeats of an attempt and renews its lease with each one that the server acknowledges. It stops
// the attempt when the lease is lost, when the server does not want the attempt any more, and when no process has started
// in time. It has no lock: its fields are set before begin, and those that change afterwards are atomic.
type heartbeats struct {
	client   client.Client
	terms    terms
	lease    *executor.Lease
	progress *progress
	// attendance knows the activity in whose name the heartbeats are sent.
	attendance *attendance
	// acknowledged is called when the server has acknowledged a heartbeat sent at an instant. running is set if the
	// heartbeat said that the process has started, and the server still wants the attempt.
	acknowledged func(sent executor.Instant, running bool)
	// stop ends the attempt. It is set by begin.
	stop func(cause error)
	// growth belongs to the loop. refused is called when the server does not change time-outs.
	growth  growth
	refused func()

	// from is when the node accepted the attempt, and startBy when its process must have started.
	from    executor.Instant
	startBy atomic.Int64 // an executor.Instant
	// since is when the work began that would be lost with the attempt, an executor.Instant, or 0 if there is no such work.
	since  atomic.Int64
	spawns chan struct{} // closed when the process, or the first of a batch, has started

	loop sync.WaitGroup
	end  context.CancelFunc // ends the loop
}

// newHeartbeats returns the heartbeats of an attempt that the node has just accepted. Its process must start within
// startTimeout.
func newHeartbeats(n *Node, t terms, p *progress, w *attendance, acknowledged func(executor.Instant, bool)) *heartbeats {
	h := &heartbeats{
		client: n.Client, terms: t, lease: w.lease, progress: p, attendance: w, acknowledged: acknowledged, refused: n.noteFixedLeases,
		from: executor.Now(), spawns: make(chan struct{}),
	}
	h.startBy.Store(int64(h.from.Add(n.Timing.startTimeout())))
	return h
}

// begin starts to send heartbeats. They continue after ctx has ended, because they hold the lease of a cancelled attempt
// while it ends.
func (h *heartbeats) begin(ctx context.Context, stop func(cause error), stopping <-chan struct{}) {
	h.stop = stop
	ctx, h.end = context.WithCancel(context.WithoutCancel(ctx))
	h.loop.Go(func() { h.run(ctx, stopping) })
}

// silence stops the heartbeats, once only the answer of the attempt is left.
func (h *heartbeats) silence() {
	h.end()
	h.loop.Wait()
}

// run sends heartbeats until ctx ends. stopping is closed when the worker stops.
func (h *heartbeats) run(ctx context.Context, stopping <-chan struct{}) {
	next := h.from.Add(h.terms.beat)
	timer := time.NewTimer(h.untilNext(next))
	defer timer.Stop()
	spawns := h.spawns
	for {
		select {
		case <-ctx.Done():
			return
		case <-stopping:
			h.stop(drained{"the node stops"})
			stopping = nil
		case <-spawns:
			next = executor.Now().Add(firstBeat)
			spawns = nil
		case <-h.progress.news:
			next = executor.Now()
		case <-timer.C:
		}
		now := executor.Now()
		if h.lease.Lost() {
			h.stop(errLeaseLost)
			return
		}
		if h.progress.isWaiting() && now >= executor.Instant(h.startBy.Load()) {
			// A stuck attempt sends no more heartbeats, so that the server moves it.
			h.stop(errNotStarted)
			return
		}
		if now >= next {
			next = now.Add(h.interval())
			switch err := h.beat(ctx); err {
			case nil:
			case heartbeat.ErrCancelled:
				h.stop(err)
			case heartbeat.ErrGone:
				h.stop(err)
				return
			case errDetached:
				next = executor.Never // the activity that reattaches it restarts the heartbeats
			default:
				next = executor.Now().Add(h.terms.again)
			}
		}
		timer.Reset(h.untilNext(next))
	}
}

// untilNext returns how long the loop may sleep, given when the next heartbeat is due.
func (h *heartbeats) untilNext(next executor.Instant) time.Duration {
	if h.progress.isWaiting() {
		next = min(next, executor.Instant(h.startBy.Load()))
	}
	return max(min(next, h.lease.StopAt()).Sub(executor.Now()), 0)
}

// interval returns the time to the next heartbeat. It is short while the server has not yet acknowledged that the
// activity left the attempt.
func (h *heartbeats) interval() time.Duration {
	if h.attendance.isUnattended() {
		return h.terms.again
	}
	return h.terms.beat
}

// beat sends a heartbeat, and renews the lease when the server acknowledges it. The error is one of those of
// heartbeat.Send, errDetached or errReattached.
func (h *heartbeats) beat(ctx context.Context) error {
	of, released := h.attendance.sender()
	if released {
		return errDetached
	}
	report := proto.CloneOf(h.progress.Load())
	report.SentAt = timestamppb.Now()
	sent := executor.Now()
	err := heartbeat.Send(ctx, h.client, h.terms.answer, of.token, report)
	switch err {
	case nil, heartbeat.ErrCancelled:
		h.attendance.renew(of, sent)
		h.acknowledged(sent, err == nil && report.GetSpawned())
	case heartbeat.ErrGone:
		return h.attendance.gone(of.number)
	}
	if err == nil && report.GetSpawned() {
		h.grow(ctx, of)
	}
	return err
}

// confirm asks the server whether it still wants the attempt, with a heartbeat that the server acknowledges, and renews
// the lease. It must be called before anything is started: if the network or the worker was stalled, the server may have
// given the task to another node. It returns nil, or why ctx has ended.
func (h *heartbeats) confirm(ctx context.Context) error {
	for ctx.Err() == nil {
		switch err := h.beat(ctx); err {
		case nil:
			return context.Cause(ctx)
		case heartbeat.ErrCancelled, heartbeat.ErrGone:
			h.stop(err)
		default:
			select {
			case <-ctx.Done():
			case <-time.After(h.terms.again):
			}
		}
	}
	return context.Cause(ctx)
}

// workFrom records that what was done from a time on would be lost with the attempt: the running program has started, or has saved
// a checkpoint.
func (h *heartbeats) workFrom(at time.Time) {
	h.since.Store(int64(executor.Now().Add(-time.Since(at))))
}

// extendStart postpones the start deadline, if there is one, while something that the process needs is being fetched,
// which may be silent for a while.
func (h *heartbeats) extendStart() {
	if executor.Instant(h.startBy.Load()) == executor.Never {
		return
	}
	h.startBy.Store(int64(executor.Now().Add(prepareSilence)))
}

// removeStartDeadline lets the start of the process take any time.
func (h *heartbeats) removeStartDeadline() { h.startBy.Store(int64(executor.Never)) }
