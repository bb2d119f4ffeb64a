package qemu

import (
	"context"
	"fmt"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/lifecycle"
)

// statePoll is how often the state of a restarting machine is polled.
const statePoll = 100 * time.Millisecond

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
	return s.Await(ctx)
}

// beginRestart begins a restart, or returns the one in progress.
func (m *machine) beginRestart() (*lifecycle.Restart, error) {
	return m.lifecycle.BeginRestart(m.life, &m.calls, nil, m.restart)
}

// restart shuts the machine down without ending QEMU, and boots it again.
func (m *machine) restart(ctx context.Context) error {
	m.steering.Lock()
	defer m.steering.Unlock()
	if m.lifecycle.State().Paused {
		if err := m.monitor.execute(ctx, "cont", nil, nil); err != nil {
			return fmt.Errorf("restart the machine: %w", err)
		}
		m.lifecycle.SetPaused(false)
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
