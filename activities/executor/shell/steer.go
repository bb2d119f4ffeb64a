package shell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"switchyard/activities/executor"
)

// suspendWait bounds how long suspending the processes of an attempt may take.
const suspendWait = 20 * time.Second

// steered holds the running attempts by id. The zero value is ready.
type steered struct {
	mu   sync.Mutex
	byID map[string]*running
}

func (s *steered) enter(id string, r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*running{}
	}
	s.byID[id] = r
}

func (s *steered) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

func (s *steered) find(id string) *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// Pause suspends all processes of an attempt, including those it forks meanwhile. If
// that fails, none is left suspended.
func (e *Executor) Pause(ctx context.Context, id string) error {
	r := e.steered.find(id)
	if r == nil {
		return executor.ErrNotRunning
	}
	r.steer.Lock()
	defer r.steer.Unlock()
	if r.isEnding() {
		return executor.ErrNotRunning
	}
	if r.suspended {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, suspendWait)
	defer cancel()
	err := r.tree.suspend(func() error {
		if r.isEnding() {
			return executor.ErrNotRunning
		}
		return ctx.Err()
	})
	if err == nil {
		r.suspended = true
		return nil
	}
	if err := r.tree.resume(); err != nil {
		return fmt.Errorf("resume %s, which could not be suspended: %w", id, err)
	}
	if errors.Is(err, executor.ErrNotRunning) {
		return err
	}
	return fmt.Errorf("suspend %s: %w", id, err)
}

// Resume resumes the processes of an attempt.
func (e *Executor) Resume(_ context.Context, id string) error {
	r := e.steered.find(id)
	if r == nil || r.isEnding() {
		return executor.ErrNotRunning
	}
	if err := r.unsuspend(); err != nil {
		return fmt.Errorf("resume %s: %w", id, err)
	}
	return nil
}

// isEnding reports whether the program has exited, or is being stopped or left to a later worker.
func (r *running) isEnding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exited || r.leaving || !r.stopAt.IsZero()
}

// unsuspend resumes a suspended attempt. It waits for a Pause in progress, which
// returns early if the attempt is ending.
func (r *running) unsuspend() error {
	r.steer.Lock()
	defer r.steer.Unlock()
	if !r.suspended {
		return nil
	}
	r.suspended = false
	return r.tree.resume()
}
