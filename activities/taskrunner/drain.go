package taskrunner

import (
	"context"
	"fmt"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// A draining node returns tasks to their runs. The Execute activity of the attempt returns "moved". The run then places the task
// again, and does not count the attempt.
//
//	waiting, or of a remote type ──▶ handed back at once
//	started ───────────────────────▶ may finish until the deadline, then handed back
//	lasting, or kept ──────────────▶ continues (see handover.go)

// drainQuiet is how long a draining node must have no attempt until it counts as drained. An attempt that was on its way
// when the drain began has arrived and been handed back by then.
const drainQuiet = 2 * time.Second

// drainCause returns why the node accepts no attempts, or nil if it does not drain.
func (s *attempts) drainCause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drain.cause
}

// drained is the cause of an attempt's end if its node drains or stops.
type drained struct{ why string }

func (d drained) Error() string { return d.why }

// drain is the state of a node's drain. The mutex of the node's attempts guards it.
type drain struct {
	// ordered is the drain that people or the stop of the worker have ordered, and byTerms the one by the terms of the node. Each is nil
	// if there is none.
	ordered, byTerms *drainOrder
	// cause is why the drain ends attempts, or nil if the node does not drain.
	cause error
	// over is set once the deadline has passed. deadline fires at that time.
	over     bool
	deadline *time.Timer
}

// drainOrder is a drain and why it ends attempts. The zero deadline means that there is none.
type drainOrder struct {
	deadline time.Time
	cause    drained
}

// Obey applies the drain that the registry holds for the node. A nil drain means that the node accepts attempts.
func (n *Node) Obey(drain *historyv1.NodeDrain) {
	switch {
	case drain == nil:
		n.EndDrain()
	case drain.GetDeadline() == nil:
		n.BeginDrain(time.Time{}, drain.GetReason())
	default:
		n.BeginDrain(drain.GetDeadline().AsTime(), drain.GetReason())
	}
}

// BeginDrain makes the node hand back every attempt that has not started, including those that arrive later, and every
// attempt of a remote type, which another node continues. Lasting attempts continue. Any other started attempt may finish
// until the deadline; it is then ended and handed back. The zero time means no deadline. An attempt that is handed back
// does not count as spent. The reason is for people and may be empty.
//
// A further call sets another deadline. BeginDrain may be called at any time.
func (n *Node) BeginDrain(deadline time.Time, reason string) {
	order := &drainOrder{deadline, drained{fmt.Sprintf("node %s is draining", n.Name)}}
	if reason != "" {
		order.cause = drained{fmt.Sprintf("node %s is draining: %s", n.Name, reason)}
	}
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain.ordered = order
	s.applyDrain()
}

// EndDrain lets the node accept attempts again, unless its terms forbid it. An attempt that is already ending still ends.
func (n *Node) EndDrain() {
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain.ordered = nil
	s.applyDrain()
}

// BeginRefusal makes the node hand back attempts as BeginDrain does, except for started ones of a remote type, until EndRefusal is called. refusal is why
// the node takes none, to follow "is". An ordered drain takes precedence, but an earlier deadline applies.
func (n *Node) BeginRefusal(deadline time.Time, refusal string) {
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain.byTerms = &drainOrder{deadline, drained{fmt.Sprintf("node %s is %s", n.Name, refusal)}}
	s.applyDrain()
}

// EndRefusal lets the node accept attempts again, unless it drains.
func (n *Node) EndRefusal() {
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain.byTerms = nil
	s.applyDrain()
}

// applyDrain applies the orders to the attempts. mu is held.
func (s *attempts) applyDrain() {
	s.drain.cause, s.drain.over = nil, false
	if s.drain.deadline != nil {
		s.drain.deadline.Stop()
		s.drain.deadline = nil
	}
	order, other := s.drain.ordered, s.drain.byTerms
	if order == nil {
		order = other
	}
	if order == nil {
		return
	}
	deadline := order.deadline
	if other != nil && !other.deadline.IsZero() && (deadline.IsZero() || other.deadline.Before(deadline)) {
		deadline = other.deadline
	}
	s.drain.cause = order.cause
	s.drain.over = !deadline.IsZero() && !time.Now().Before(deadline)
	if !deadline.IsZero() && !s.drain.over {
		var timer *time.Timer
		timer = time.AfterFunc(time.Until(deadline), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.drain.deadline == timer {
				s.drain.over = true
				s.handBack()
			}
		})
		s.drain.deadline = timer
	}
	s.handBack()
}

// handBack ends the attempts that wait and those that another node can continue. Once the deadline has passed, it ends all
// but those that outlive the drain. mu is held.
func (s *attempts) handBack() {
	for a := range s.live {
		if !s.outlivesDrain(a) && (s.drain.over || !a.started || a.isRemote() && s.drain.ordered != nil) {
			a.stop(s.drain.cause)
		}
	}
}

// AwaitIdle waits until the node has no waiting or running attempt except those that outlive a drain. If ctx ends first, it returns the
// cause of ctx. New attempts may arrive at once, unless the node drains.
func (n *Node) AwaitIdle(ctx context.Context) error {
	s := &n.attempts
	s.mu.Lock()
	if s.isIdle() {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AwaitQuiet returns when a draining node has had no attempt for long enough that none can still be on its way. If ctx
// ends first, it returns the cause of ctx.
func (n *Node) AwaitQuiet(ctx context.Context) error {
	for {
		if err := n.AwaitIdle(ctx); err != nil {
			return err
		}
		before := n.attempts.total()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(drainQuiet):
		}
		if n.attempts.total() == before {
			return nil
		}
	}
}
