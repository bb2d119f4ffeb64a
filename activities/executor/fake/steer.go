package fake

import (
	"context"

	"switchyard/activities/executor"
)

var _ executor.Steerer = (*Executor)(nil)

// Pause keeps a running attempt from coming to its end.
func (e *Executor) Pause(_ context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	paused, runs := e.paused[id]
	if !runs {
		return executor.ErrNotRunning
	}
	if paused == nil {
		e.paused[id] = make(chan struct{})
		e.change()
	}
	return nil
}

// Resume lets it continue.
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
		e.change()
	}
	return nil
}

// Paused reports whether an attempt is suspended.
func (e *Executor) Paused(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.paused[id] != nil
}

// enter lets an attempt be steered, until leave.
func (e *Executor) enter(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paused[id] = nil
}

// leave is false, and nothing has changed, while the attempt is suspended: it is to ask
// again when the channel is closed.
func (e *Executor) leave(id string, anyway bool) (<-chan struct{}, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if paused := e.paused[id]; paused != nil && !anyway {
		return paused, false
	}
	delete(e.paused, id)
	return nil, true
}

// awaitResume ends what Pause may do to an attempt that has come to its end, and waits
// for the end of what it has done. It is false when ctx has ended before.
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
