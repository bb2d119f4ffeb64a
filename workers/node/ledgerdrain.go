package node

import (
	"context"
	"fmt"
)

// Drain makes all waiting and later calls of Acquire on this ledger fail immediately with
// ErrDraining and the cause, which may be nil. Running attempts keep their places. Draining again
// replaces the cause.
func (l *Ledger) Drain(cause error) {
	m := l.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	l.closed = ErrDraining
	if cause != nil {
		l.closed = fmt.Errorf("%w: %w", ErrDraining, cause)
	}
	m.refuse(func(w *waiter) error {
		if w.ledger != l {
			return nil
		}
		return refusal(w, l.closed)
	})
	// Waiters of other nodes may be able to start now.
	m.grant()
}

// Undrain makes the ledger accept attempts again.
func (l *Ledger) Undrain() {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	l.closed = nil
}

// Idle waits until no attempt holds a place on the node, or returns the cause of ctx. Unless the
// node drains, a new attempt may have started by the time Idle returns.
func (l *Ledger) Idle(ctx context.Context) error {
	m := l.machine
	m.mu.Lock()
	if len(l.running) == 0 {
		m.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	m.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func refusal(w *waiter, cause error) error {
	return fmt.Errorf("acquire for %s: %w", w.held.id, cause)
}
