package qemu

import (
	"context"
	"time"

	"switchyard/activities/executor"
)

const (
	// powerAgain is how often the power button is pressed. A press before the machine listens has no effect.
	powerAgain = 2 * time.Second
	// quitPatience is how long QEMU may take to end after the command quit.
	quitPatience = 3 * time.Second
)

// stop asks the machine to shut down, and ends it by force when the grace period is over.
func (m *machine) stop() {
	_, restart, ok := m.lifecycle.BeginStop()
	if !ok {
		return
	}
	m.beginStop()
	if restart != nil {
		restart.Finish(0)
	}
	m.steering.Lock()
	defer m.steering.Unlock()
	// A paused machine does not see the power button. QEMU may have paused it after the command was given up.
	_ = m.monitor.execute(m.life, "cont", nil, nil)
	// A restart may have left the action "pause".
	_ = m.monitor.setShutdownAction(m.life, "poweroff")
	pressing, release := context.WithCancel(m.life)
	m.calls.Go(func() { m.pressPower(pressing) })
	over := m.attempt.AwaitKill(m.ended)
	release()
	if !over {
		return
	}
	m.attempt.Notify("the machine did not shut down within its grace period; killing it")
	m.kill()
	<-m.ended
}

// pressPower presses the power button repeatedly until ctx ends.
func (m *machine) pressPower(ctx context.Context) {
	for ctx.Err() == nil {
		if err := m.monitor.execute(ctx, "system_powerdown", nil, nil); err != nil && ctx.Err() == nil && m.folder.isRunning() {
			m.e.logger.Warn("cannot press the power button of a virtual machine", "attempt", m.attempt.ID, "error", err)
		}
		sleep(ctx, powerAgain)
	}
}

// kill ends QEMU with its quit command, or by a signal if it does not obey.
func (m *machine) kill() {
	m.mu.Lock()
	m.killed = true
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(m.life, quitPatience)
	defer cancel()
	if m.monitor.execute(ctx, "quit", nil, nil) == nil {
		select {
		case <-m.ended:
			return
		case <-ctx.Done():
		}
	}
	if err := m.folder.kill(); err != nil {
		m.e.logger.Warn("cannot kill a virtual machine", "attempt", m.attempt.ID, "error", err)
	}
}

// handOver leaves the machine to a later worker. A capture resumes the machine before that; a restart is completed by the
// later worker.
func (m *machine) handOver() {
	restart, ok := m.lifecycle.Leave()
	if !ok {
		return
	}
	m.beginStop()
	if restart != nil {
		restart.Finish(0)
	}
	m.steering.Lock()
	defer m.steering.Unlock()
	m.giveUp(executor.ErrLetGo)
}
