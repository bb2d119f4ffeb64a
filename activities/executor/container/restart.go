package container

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor"
)

// errStopAsked is the cause with which Halt ends an attempt.
var errStopAsked = errors.New("stopped on request")

// Halt ends an attempt, with the contract of executor.Lasting.Stop.
func (e *Executor) Halt(_ context.Context, id string) error {
	r := e.find(id)
	if r == nil {
		return executor.ErrNotRunning
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.asked:
		return nil
	case r.over || r.stopping:
		return executor.ErrNotRunning
	}
	r.asked = true
	close(r.stopAsked)
	return nil
}

// Reboot ends the processes of a container and starts it again, with the contract of executor.Lasting.Restart.
func (e *Executor) Reboot(ctx context.Context, id string) error {
	r := e.find(id)
	if r == nil {
		return executor.ErrNotRunning
	}
	restart, err := r.beginRestart()
	if err != nil {
		return err
	}
	select {
	case <-restart.done:
		return restart.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// restart is a restart in progress.
type restart struct {
	cancel context.CancelFunc
	// done is closed when the restart has ended; err is then its error.
	done chan struct{}
	err  error
}

// finish waits for the end of a restart, and cancels it after patience.
func (s *restart) finish(patience time.Duration) {
	select {
	case <-s.done:
	case <-time.After(patience):
		s.cancel()
		<-s.done
	}
}

// beginRestart begins a restart, or returns the one in progress.
func (r *running) beginRestart() (*restart, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over || r.stopping || r.asked:
		return nil, executor.ErrNotRunning
	case r.restarting != nil:
		return r.restarting, nil
	case r.capturing:
		return nil, errCapturing
	case r.holdsMounts:
		// By then, the engine's mount path may denote another process or another file.
		return nil, &executor.Refusal{Text: "it has a mount below a mount rule, which cannot be mounted again on a restart; allow the directory with a rule of its own, or stop the task and create it again"}
	}
	ctx, cancel := context.WithCancel(r.life)
	s := &restart{cancel: cancel, done: make(chan struct{})}
	r.restarting = s
	r.restarts++
	r.calls.Go(func() {
		defer cancel()
		r.steering.Lock()
		err := r.restart(ctx)
		r.steering.Unlock()
		r.mu.Lock()
		r.restarting, r.restartError = nil, err
		r.paused = r.paused && err != nil
		r.mu.Unlock()
		s.err = err
		close(s.done)
	})
	return s, nil
}

// awaitRestart waits for the end of a restart in progress, and returns how many restarts have begun.
func (r *running) awaitRestart(ctx context.Context) int {
	for {
		r.mu.Lock()
		under, begun := r.restarting, r.restarts
		r.mu.Unlock()
		if under == nil || ctx.Err() != nil {
			return begun
		}
		select {
		case <-under.done:
		case <-ctx.Done():
		}
	}
}

// restart makes the engine restart the container, which the engine completes even without its client. If the engine goes
// away meanwhile, restart waits for it.
func (r *running) restart(ctx context.Context) error {
	r.mu.Lock()
	paused := r.paused
	r.mu.Unlock()
	if paused {
		r.unpause(ctx)
	}
	before, err := r.state(ctx)
	if err != nil {
		return err
	}
	starts := r.e.endings.get(r.id).starts
	for {
		seconds := int(math.Ceil(r.attempt.Grace.Seconds()))
		guarded, release := r.e.engine.guard(ctx)
		err := r.e.docker.ContainerRestart(guarded, r.id, container.StopOptions{Timeout: &seconds})
		isAway := guarded.Err() != nil
		release()
		switch {
		case err == nil:
			r.noteRestart(ctx, starts)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case cerrdefs.IsNotFound(err):
			return executor.ErrNotRunning
		case !isAway && r.e.engine.confirm(ctx):
			return fmt.Errorf("restart container %s: %s", r.name, engineMessage(err))
		}
		switch done, err := r.isRestarted(ctx, before); {
		case err != nil:
			return err
		case done:
			r.noteRestart(ctx, starts)
			return nil
		}
	}
}

// isRestarted waits for an engine that went away during a restart, and reports whether the restart has happened.
func (r *running) isRestarted(ctx context.Context, before *container.State) (bool, error) {
	for since := time.Now(); ; {
		now, err := r.state(ctx)
		switch {
		case err != nil:
			return false, err
		case alive(now) && now.StartedAt != before.StartedAt:
			return true, nil
		case !alive(now) || time.Since(since) > r.attempt.Grace+endPatience:
			return false, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pingAgain):
		}
	}
}

// noteRestart records the new process of a container that has started again, and forgets how the old one ended.
func (r *running) noteRestart(ctx context.Context, starts int) {
	if !r.e.endings.await(ctx, r.id, eventPatience, func(e ending) bool { return e.starts > starts }) {
		r.e.endings.watch(r.id)
	}
	r.lookForProcess(ctx)
}

// leave leaves the container to a later worker.
func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.stopping, r.left = true, true
		r.giveUp(executor.ErrLetGo)
	}
}

// isLeft reports whether the container is left to a later worker.
func (r *running) isLeft() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// hasEnded waits briefly for the end of the container, and reports whether it is known.
func (r *running) hasEnded(ctx context.Context) bool {
	select {
	case <-r.ended:
		return true
	case <-ctx.Done():
	case <-time.After(pingAgain):
	}
	return false
}
