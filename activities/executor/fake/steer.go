package fake

import (
	"context"

	"switchyard/activities/executor"
)

// Pause keeps a running attempt from ending.
func (e *Executor) Pause(_ context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	paused, runs := e.paused[id]
	if !runs {
		return executor.ErrNotRunning
	}
	if paused == nil {
		e.paused[id] = make(chan struct{})
		e.notifyWaiters()
	}
	return nil
}

// Resume lets a suspended attempt continue.
func (e *Executor) Resume(_ context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	paused, runs := e.paused[id]
	if !runs {
		return executor.ErrNotRunning
	}
	if paused != nil {
		close(paused)
		e.paused[id] = nil
		e.notifyWaiters()
	}
	return nil
}

// Paused reports whether an attempt is suspended.
func (e *Executor) Paused(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.paused[id] != nil
}

// enter allows Pause and Resume for an attempt, until leave.
func (e *Executor) enter(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paused[id] = nil
}

// leave ends steering of an attempt. If the attempt is suspended and anyway is false,
// leave returns false with a channel that is closed on Resume, and the caller tries
// again then.
func (e *Executor) leave(id string, anyway bool) (<-chan struct{}, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if paused := e.paused[id]; paused != nil && !anyway {
		return paused, false
	}
	delete(e.paused, id)
	return nil, true
}

// awaitResume ends steering of an attempt whose step is over, after waiting for Resume
// if the attempt is suspended. It returns false if ctx ends first.
func (e *Executor) awaitResume(ctx context.Context, id string) bool {
	for {
		paused, left := e.leave(id, false)
		if left {
			return true
		}
		select {
		case <-paused:
		case <-ctx.Done():
			return false
		}
	}
}
