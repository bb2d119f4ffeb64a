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

// drained is the cause of an attempt's end if its node drains or stops.
type drained struct{ why string }

func (d drained) Error() string { return d.why }

// drain is the state of a node's drain. The mutex of the node's attempts guards it.
type drain struct {
	// cause is why the drain ends attempts, or nil if the node does not drain.
	cause error
	// over is set once the deadline has passed. deadline fires at that time.
	over     bool
	deadline *time.Timer
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
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain.cause = drained{fmt.Sprintf("node %s is draining", n.Name)}
	if reason != "" {
		s.drain.cause = drained{fmt.Sprintf("node %s is draining: %s", n.Name, reason)}
	}
	if s.drain.deadline != nil {
		s.drain.deadline.Stop()
		s.drain.deadline = nil
	}
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
		if !s.outlivesDrain(a) && (s.drain.over || !a.started || a.isRemote()) {
			a.stop(s.drain.cause)
		}
	}
}

// EndDrain lets the node accept attempts again. An attempt that is already ending still ends.
func (n *Node) EndDrain() {
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain.cause, s.drain.over = nil, false
	if s.drain.deadline != nil {
		s.drain.deadline.Stop()
		s.drain.deadline = nil
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
