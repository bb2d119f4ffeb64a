package container

import (
	"context"
	"fmt"
	"sync"

	"switchyard/activities/executor"
)

// phase is what happens to the container of an attempt: whether it is paused, restarted, captured, stopped or left. mu protects
// all fields. The functions that its methods are given are called while mu is held.
type phase struct {
	mu sync.Mutex
	// over reports that the container has ended, stopping that it is being stopped, and left that it is left to a later worker.
	over, stopping, left bool
	// paused reports that the container may be suspended, capturing that it is while its files are copied.
	paused, capturing bool
	// restarting is the restart in progress, or nil. restarts counts the restarts begun. restartError is the error of the last
	// one.
	restarting   *restart
	restarts     int
	restartError error
}

// isStopping reports whether the container is being stopped, or was stopped.
func (p *phase) isStopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

// isEnding reports whether the container has ended or is being stopped.
func (p *phase) isEnding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over || p.stopping
}

// isLeft reports whether the container is left to a later worker.
func (p *phase) isLeft() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// stops returns whether the container was stopped, and whether it was left instead.
func (p *phase) stops() (stopped, left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping, p.left
}

// beginStop begins to stop the container, unless it has ended. It returns whether the container may be suspended, and the
// restart in progress or nil.
func (p *phase) beginStop() (paused bool, under *restart, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false, nil, false
	}
	p.stopping = true
	return p.paused, p.restarting, true
}

// leave leaves the container to a later worker, unless it has ended.
func (p *phase) leave(giveUp func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.stopping, p.left = true, true
		giveUp()
	}
}

// end records the end of the container, and returns it. It returns false for an end with which a restart has begun, because more
// than begun restarts have, unless the wait for the end was abandoned.
func (p *phase) end(e exit, begun int, abandoned bool) (exit, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.restarts != begun && !abandoned {
		return exit{}, false
	}
	if p.restartError != nil && !p.stopping {
		e.err = fmt.Errorf("it could not be restarted: %w", p.restartError)
	}
	p.over = true
	return e, true
}

// beginSteer begins to pause or resume the container. From now on it may be paused if paused is set.
func (p *phase) beginSteer(paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = p.paused || paused
	switch {
	case p.over || p.stopping:
		return executor.ErrNotRunning
	case p.capturing:
		return errCapturing
	}
	return nil
}

// endSteer records that the container is paused or resumed.
func (p *phase) endSteer(paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return executor.ErrNotRunning
	}
	p.paused = paused
	return nil
}

// isPaused reports whether the container may be suspended.
func (p *phase) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused
}

// beginCapture begins to capture the container, and reports whether it may be suspended already.
func (p *phase) beginCapture() (paused bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	paused = p.paused
	switch {
	case p.over || p.stopping:
		return false, executor.ErrNotRunning
	case p.capturing || p.restarting != nil:
		return false, &executor.Refusal{Text: "it is being restarted or captured as another environment; try again when that has ended"}
	}
	p.capturing, p.paused = true, true
	return paused, nil
}

// endCapture ends the capture.
func (p *phase) endCapture(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.capturing, p.paused = false, paused
}

// beginRestart begins a restart with start, or returns the one in progress. refusal is why the container cannot be restarted, or
// nil.
func (p *phase) beginRestart(refusal error, start func() *restart) (*restart, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over || p.stopping:
		return nil, executor.ErrNotRunning
	case p.restarting != nil:
		return p.restarting, nil
	case p.capturing:
		return nil, errCapturing
	case refusal != nil:
		return nil, refusal
	}
	p.restarts++
	p.restarting = start()
	return p.restarting, nil
}

// endRestart ends a restart with its error. A restarted container is not suspended.
func (p *phase) endRestart(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarting, p.restartError = nil, err
	p.paused = p.paused && err != nil
}

// awaitRestart waits for the end of a restart in progress, and returns how many restarts have begun.
func (p *phase) awaitRestart(ctx context.Context) int {
	for {
		p.mu.Lock()
		under, begun := p.restarting, p.restarts
		p.mu.Unlock()
		if under == nil || ctx.Err() != nil {
			return begun
		}
		select {
		case <-under.done:
		case <-ctx.Done():
		}
	}
}
