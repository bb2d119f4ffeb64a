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
	var refusal error
	if r.holdsMounts {
		// By then, the engine's mount path may denote another process or another file.
		refusal = &executor.Refusal{Text: "it has a mount below a mount rule, which cannot be mounted again on a restart; allow the directory with a rule of its own, or stop the task and create it again"}
	}
	return r.phase.beginRestart(refusal, func() *restart {
		ctx, cancel := context.WithCancel(r.life)
		s := &restart{cancel: cancel, done: make(chan struct{})}
		r.calls.Go(func() {
			defer cancel()
			r.steering.Lock()
			err := r.restart(ctx)
			r.steering.Unlock()
			r.phase.endRestart(err)
			s.err = err
			close(s.done)
		})
		return s
	})
}

// restart makes the engine restart the container, which the engine completes even without its client. If the engine goes
// away meanwhile, restart waits for it.
func (r *running) restart(ctx context.Context) error {
	if r.phase.isPaused() {
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
