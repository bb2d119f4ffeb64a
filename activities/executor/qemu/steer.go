package qemu

import (
	"context"
	"fmt"

	"switchyard/activities/executor"
)

// Pause suspends a machine.
func (e *Executor) Pause(ctx context.Context, id string) error { return e.steer(ctx, id, "stop", true) }

// Resume resumes a suspended machine.
func (e *Executor) Resume(ctx context.Context, id string) error {
	return e.steer(ctx, id, "cont", false)
}

// steer pauses or resumes a machine with a QEMU command. Repeating the command is a no-op.
func (e *Executor) steer(ctx context.Context, id, command string, paused bool) error {
	m := e.find(id)
	if m == nil {
		return executor.ErrNotRunning
	}
	m.steering.Lock()
	defer m.steering.Unlock()
	if err := m.lifecycle.BeginSteer(false); err != nil {
		return err
	}
	// QEMU carries the command out even if ctx is cancelled meanwhile.
	if err := m.monitor.execute(context.WithoutCancel(ctx), command, nil, nil); err != nil {
		if m.isEnding() || !m.folder.isRunning() {
			return executor.ErrNotRunning
		}
		return fmt.Errorf("%s the virtual machine: %w", map[bool]string{true: "pause", false: "resume"}[paused], err)
	}
	m.lifecycle.SetPaused(paused)
	m.removeCaptureMark() // a capture that could not resume the machine has left one
	return nil
}
