package qemu

import (
	"context"
	"fmt"
	"sync"
	"time"

	"switchyard/activities/executor"
)

// statePoll is how often the state of a restarting machine is polled.
const statePoll = 100 * time.Millisecond

// restart is a restart in progress.
type restart struct {
	cancel context.CancelFunc
	// done is closed when the restart has ended; err is set before that.
	done chan struct{}
	err  error
}

// Restart shuts a machine down, by force after the grace period, and boots it again with its disk. QEMU itself
// continues.
func (e *Executor) Restart(ctx context.Context, id string) error {
	m := e.find(id)
	if m == nil {
		return executor.ErrNotRunning
	}
	s, err := m.beginRestart()
	if err != nil {
		return err
	}
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// beginRestart begins a restart, or returns the one in progress.
func (m *machine) beginRestart() (*restart, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.over || m.stopping:
		return nil, executor.ErrNotRunning
	case m.restarting != nil:
		return m.restarting, nil
	}
	ctx, cancel := context.WithCancel(m.life)
	s := &restart{cancel: cancel, done: make(chan struct{})}
	m.restarting = s
	m.calls.Go(func() {
		defer cancel()
		m.steering.Lock()
		err := m.restart(ctx)
		m.steering.Unlock()
		m.mu.Lock()
		m.restarting = nil
		if err != nil && (m.over || m.stopping) {
			err = executor.ErrNotRunning
		}
		m.mu.Unlock()
		s.err = err
		close(s.done)
	})
	return s, nil
}

// restart shuts the machine down without ending QEMU, and boots it again.
func (m *machine) restart(ctx context.Context) error {
	if m.isPaused() {
		if err := m.monitor.execute(ctx, "cont", nil, nil); err != nil {
			return fmt.Errorf("restart the machine: %w", err)
		}
		m.setPaused(false)
	}
	if err := m.monitor.setShutdownAction(ctx, "pause"); err != nil {
		return fmt.Errorf("restart the machine: %w", err)
	}
	m.login.resetAnswered()
	m.shutDown(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := m.monitor.execute(ctx, "system_reset", nil, nil); err != nil {
		return fmt.Errorf("restart the machine: %w", err)
	}
	if err := m.boot(ctx); err != nil {
		return fmt.Errorf("restart the machine: %w", err)
	}
	m.login.resetAnswered()
	return nil
}

// shutDown asks the machine to shut down and waits until it has, or until the grace period is over.
func (m *machine) shutDown(ctx context.Context) {
	pressing, release := context.WithCancel(ctx)
	// A press that QEMU receives after the reset would shut the machine down again.
	var presses sync.WaitGroup
	defer presses.Wait()
	defer release()
	presses.Go(func() { m.pressPower(pressing) })
	down := make(chan struct{})
	m.calls.Go(func() {
		defer close(down)
		for pressing.Err() == nil {
			if state, err := m.monitor.state(pressing); err == nil && state == stateShutdown {
				return
			}
			sleep(pressing, statePoll)
		}
	})
	stop := context.AfterFunc(m.life, release)
	defer stop()
	if m.attempt.AwaitKill(down) {
		m.attempt.Notify("the machine did not shut down within its grace period; resetting it")
	}
}

// boot waits until a machine runs after its reset, and makes its next power-off end QEMU.
func (m *machine) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("the machine did not start within %v", startPatience))
	defer cancel()
	isRestored := false
	for ; ctx.Err() == nil; sleep(ctx, statePoll) {
		state, err := m.monitor.state(ctx)
		switch {
		case err != nil:
			return err
		case state == stateShutdown:
			// The machine is not reset yet, or has shut down after the forced reset.
			if isRestored {
				err = m.monitor.execute(ctx, "system_reset", nil, nil)
			}
		case !isRestored:
			err = m.monitor.setShutdownAction(ctx, "poweroff")
			isRestored = true
		case state == stateRunning:
			return nil
		default:
			err = m.monitor.execute(ctx, "cont", nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
