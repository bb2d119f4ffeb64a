package container

import (
	"context"
	"fmt"
	"math"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor"
)

// Restart ends the processes of a container and starts it again.
func (e *Executor) Restart(ctx context.Context, id string) error {
	r := e.find(id)
	if r == nil {
		return executor.ErrNotRunning
	}
	var refusal error
	if r.holdsMounts {
		// By then, the engine's mount path may denote another process or another file.
		refusal = &executor.Refusal{Text: "it has a mount below a mount rule, which cannot be mounted again on a restart; allow the directory with a rule of its own, or stop the task and create it again"}
	}
	restart, err := r.lifecycle.BeginRestart(r.life, &r.calls, refusal, r.restart)
	if err != nil {
		return err
	}
	return restart.Await(ctx)
}

// restart makes the engine restart the container, which the engine completes even without its client. If the engine goes
// away meanwhile, restart waits for it.
func (r *running) restart(ctx context.Context) error {
	r.steering.Lock()
	defer r.steering.Unlock()
	if r.lifecycle.State().Paused {
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
		r.e.endings.watch(r.id, numberOf(r.stopSignal()))
	}
	r.lookForProcess(ctx)
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
