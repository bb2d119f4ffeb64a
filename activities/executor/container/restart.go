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

// errStopAsked ends an attempt by Halt.
var errStopAsked = errors.New("it is stopped as asked")

// Halt has an attempt end as executor.Lasting.Stop does.
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

// Reboot ends the processes of a container and starts it again, as executor.Lasting.Restart does.
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

// restart is one that is under way.
type restart struct {
	cancel context.CancelFunc
	// done is closed at its end, and err is its error then.
	done chan struct{}
	err  error
}

// finish waits for the end of a restart, and gives it up when that takes too long.
func (s *restart) finish(patience time.Duration) {
	select {
	case <-s.done:
	case <-time.After(patience):
		s.cancel()
		<-s.done
	}
}

// beginRestart begins a restart, or returns the one that is under way.
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
		// The engine would mount what another process, or another file, is by that time.
		return nil, &executor.Refusal{Text: "it has a mount below a rule of the node, which cannot be mounted again; allow the directory by a rule of its own, or stop it and create it again"}
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

// awaitRestart waits for a restart that is under way, and returns how many have begun.
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

// restart has the engine restart the container, which it completes without its client. An engine that goes away meanwhile is
// waited for.
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
			return fmt.Errorf("restart container %s: %s", r.name, engineSays(err))
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

// isRestarted waits for an engine that went away in a restart, and reports whether that has been done.
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

// noteRestart notes the new process of a container that has started again, and forgets how the old one has ended.
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

// hasEnded reports whether the end of the container is known, and waits for that for a while.
func (r *running) hasEnded(ctx context.Context) bool {
	select {
	case <-r.ended:
		return true
	case <-ctx.Done():
	case <-time.After(pingAgain):
	}
	return false
}
