package container

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"switchyard/activities/executor"
)

// Pause suspends a container.
func (e *Executor) Pause(ctx context.Context, id string) error {
	return e.steer(ctx, id, "pause", true, e.docker.ContainerPause, "already paused")
}

// Resume resumes a suspended container.
func (e *Executor) Resume(ctx context.Context, id string) error {
	return e.steer(ctx, id, "resume", false, e.docker.ContainerUnpause, "is not paused")
}

// steer pauses or resumes a container. done is the engine's error text for a container
// that is already in the desired state. A cancelled ctx does not end the call to the engine,
// which would carry it out regardless, perhaps after a later one.
func (e *Executor) steer(ctx context.Context, id, what string, paused bool, do func(context.Context, string) error, done string) error {
	r := e.find(id)
	if r == nil {
		return executor.ErrNotRunning
	}
	r.steering.Lock()
	defer r.steering.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := r.lifecycle.BeginSteer(paused); err != nil {
		return err
	}
	ctx, release := e.engine.guard(context.WithoutCancel(ctx))
	defer release()
	err := do(ctx, r.id)
	text := ""
	if err != nil {
		text = strings.ToLower(err.Error())
	}
	switch {
	case err == nil, strings.Contains(text, done):
		if r.lifecycle.State().IsOver() {
			return executor.ErrNotRunning
		}
		r.lifecycle.SetPaused(paused)
		return nil
	case cerrdefs.IsNotFound(err), strings.Contains(text, "is not running"):
		return executor.ErrNotRunning
	}
	return fmt.Errorf("%s container %s: %w", what, r.name, causeOf(ctx, err))
}
