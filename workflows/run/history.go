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

// history owns the limits of the workflow's history. It decides when the run admits nothing more and when nodes are asked to
// detach their attempts.
type history struct {
	*execution

	// isQuiet reports whether the next execution can take over everything in flight.
	isQuiet func() bool

	bound limits.HistorySize // past it, nothing is admitted
	begun bool               // a round has begun: short attempts may still end
	round int
	over  workflow.Future // ready when the time to continue as new is up; nil unless nodes are being asked
}

// isOverdue reports whether the time for detached attempts to wait for continue-as-new is up.
func (h *history) isOverdue() bool { return h.over != nil && h.over.IsReady() }

// limit decides whether this round of the loop admits anything.
func (h *history) limit() {
	size, was := h.historySize(), h.draining
	full := size.Exceeds(h.bound)
	if full && !h.begun {
		h.begun = true
		wait := h.limits.DetachWait
		if size.Exceeds(h.limits.Last()) {
			wait = h.limits.DetachedLease // the remaining events are reserved for what runs
		}
		h.calls.After(wait, "let short attempts end", h.beginDetaching)
	}
	h.draining = full || size.Exceeds(h.limits.Soft()) && h.isQuiet()
	if was && !h.draining {
		h.flight.RequestAll() // answers of placement were dropped while draining
	}
}

// isFull reports whether the history has passed its limit since the last round, so that nothing more is admitted.
func (h *history) isFull() bool { return !h.begun && h.historySize().Exceeds(h.bound) }

// isDetaching reports whether nodes are being asked to detach their attempts.
func (h *history) isDetaching() bool { return h.over != nil }

// detachRound returns the number of the current round of asking nodes.
func (h *history) detachRound() int { return h.round }

// beginDetaching starts a round of asking nodes. If the run has not continued as new in time, it admits again.
func (h *history) beginDetaching() {
	h.round++
	h.calls.Charge(calls.CommandCharge)
	h.over = workflow.NewTimerWithOptions(h.ctx, h.limits.DetachedLease/leaseShare, workflow.TimerOptions{Summary: "reattach what is detached"})
	h.calls.Watch(h.over, func(workflow.Future) {
		h.begun, h.over = false, nil
		h.bound = h.bound.Raised(h.historySize(), h.limits.Step(), h.limits.Last())
		h.wake()
	})
}
