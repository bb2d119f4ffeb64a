package run

import (
	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/calls"
	"switchyard/workflows/limits"
)

// Past the soft limit of its history a run continues as new as soon as it is quiet, and admits tasks until then. Past the hard
// limit it stops admitting and has the nodes detach attempts that do not end soon. The next execution reattaches them:
//
//	admitting ──hard bound──▶ draining ──a moment──▶ detaching ──quiet──▶ continue as new ──▶ reattach
//	    ▲                                                │
//	    └── hard bound raised, reattach ── leaseShare ───┘
//
// No activity renews the lease of a detached attempt, which is long enough to reach the next execution. An attempt that cannot
// be detached does not affect the others: the detached ones are reattached while most of their lease is left, and the next
// round starts with the attempt that failed this one. At the last limit the run stops admitting, but the rounds continue.
//
// If a detached attempt is lost, its task ends only when the lease expires, because the attempt may run until then.

// leaseShare is the divisor of the detached lease that gives the time in which the run must continue as new.
const leaseShare = 6

// history is how far this execution may go, and what it does to continue as new.
type history struct {
	bound limits.HistorySize // past it, nothing is admitted
	begun bool               // a round has begun: short attempts may still end
	round int                // of asking nodes to detach their attempts
	over  workflow.Future    // ready when the time to continue as new is up; nil unless nodes are being asked
}

// historySize returns the size of the history of this execution. Signals with unknown names count, too.
func (r *run) historySize() limits.HistorySize {
	info := workflow.GetInfo(r.root)
	size := limits.HistorySize{Events: info.GetCurrentHistoryLength(), Bytes: info.GetCurrentHistorySize(), Updates: r.updates, Signals: r.signals}
	//workflowcheck:ignore (a sum does not depend on the order)
	for _, name := range workflow.GetUnhandledSignalNames(r.root) {
		size.Signals += workflow.GetSignalChannel(r.root, name).Len()
	}
	return size
}

// limitHistory decides whether this round of the loop admits anything.
func (r *run) limitHistory() {
	size, was := r.historySize(), r.draining
	full := size.Exceeds(r.history.bound)
	if full && !r.history.begun {
		r.history.begun = true
		wait := r.Limits.DetachWait
		if size.Exceeds(r.Limits.Last()) {
			wait = r.Limits.DetachedLease // the remaining events are reserved for what runs
		}
		r.calls.After(wait, "let short attempts end", r.beginDetaching)
	}
	r.draining = full || size.Exceeds(r.Limits.Soft()) && r.isQuiet()
	if was && !r.draining {
		r.flight.RequestAll() // answers of placement were dropped while draining
	}
}

// isFull reports whether the history has passed its limit since the last round, so that nothing more is admitted.
func (r *run) isFull() bool { return !r.history.begun && r.historySize().Exceeds(r.history.bound) }

// isDetaching reports whether nodes are being asked to detach their attempts.
func (r *run) isDetaching() bool { return r.history.over != nil }

// beginDetaching starts a round of asking nodes. If the run has not continued as new in time, it admits again.
func (r *run) beginDetaching() {
	h := &r.history
	h.round++
	r.calls.Charge(calls.CommandCharge)
	h.over = workflow.NewTimerWithOptions(r.ctx, r.Limits.DetachedLease/leaseShare, workflow.TimerOptions{Summary: "reattach what is detached"})
	r.calls.Watch(h.over, func(workflow.Future) {
		h.begun, h.over = false, nil
		h.bound = h.bound.Raised(r.historySize(), r.Limits.Step(), r.Limits.Last())
		r.wake()
	})
}
