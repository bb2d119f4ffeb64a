package container

import (
	"context"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// create creates the container without starting it.
func (r *running) create(ctx context.Context, req request) (made, error) {
	m, err := convert(req)
	if err != nil {
		return m, r.e.kind.badSpec(err)
	}
	for again := false; ; again = true {
		c, err := r.e.docker.ContainerCreate(ctx, m.config, m.host, m.networks, nil, r.name)
		switch {
		case err == nil:
			r.id = c.ID
			r.e.endings.watch(r.id, numberOf(r.stopSignal()))
			for _, w := range c.Warnings {
				r.attempt.Notify("container engine: " + w)
			}
			return m, nil
		case cerrdefs.IsConflict(err) && !again && r.removeEarlier(ctx):
			continue
		case ctx.Err() != nil:
			// The engine may still create the container.
			r.e.sweeper.add(r.name, true)
		}
		return m, classifyFault("create container "+r.name, causeOf(ctx, err))
	}
}

// removeEarlier removes a container of the same name if an earlier call created it for
// the same dispatch and its answer was lost. It reports whether it removed one.
func (r *running) removeEarlier(ctx context.Context) bool {
	c, err := r.e.docker.ContainerInspect(ctx, r.name)
	if err != nil || c.Config == nil || c.Config.Labels[labelID] != r.attempt.ID {
		return false
	}
	return r.e.removeNow(ctx, c.ID) == nil
}

const (
	// removePatience bounds all tries to remove a container together.
	removePatience = 30 * time.Second
	removeTries    = 3
)

// remove removes the container now, or as soon as the engine is able to.
func (r *running) remove() {
	if r.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removePatience)
	defer cancel()
	ctx, done := r.e.engine.guard(ctx)
	defer done()
	err := r.e.removeNow(ctx, r.id)
	for try := 1; err != nil && try < removeTries && ctx.Err() == nil; try++ {
		err = r.e.removeNow(ctx, r.id)
	}
	if err != nil {
		r.e.logger.Warn("cannot remove a container; will try again", "container", r.name, "error", err)
		r.e.sweeper.add(r.id, false)
	}
}

// removeNow removes a container with its processes and returns once it is gone.
func (e *shared) removeNow(ctx context.Context, id string) error {
	err := e.docker.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	for cerrdefs.IsConflict(err) { // another caller is removing it
		select {
		case <-ctx.Done():
			return causeOf(ctx, err)
		case <-time.After(removePoll):
		}
		if _, gone := e.docker.ContainerInspect(ctx, id); cerrdefs.IsNotFound(gone) {
			return nil
		}
	}
	if err == nil || cerrdefs.IsNotFound(err) {
		return nil
	}
	return causeOf(ctx, err)
}

// removePoll is how often to check on a container that another caller is removing.
const removePoll = 50 * time.Millisecond

// keepForInspection leaves the container for users to inspect. It renames the container, so that
// it is not mistaken for a leftover of a dead worker.
func (r *running) keepForInspection() {
	ctx, cancel := context.WithTimeout(context.Background(), removePatience)
	defer cancel()
	ctx, done := r.e.engine.guard(ctx)
	defer done()
	name := r.name + keptSuffix
	if err := r.e.docker.ContainerRename(ctx, r.id, name); err != nil {
		r.attempt.Notify(fmt.Sprintf("the container could not be kept: %v", err))
		r.remove()
		return
	}
	r.attempt.Notify(fmt.Sprintf("the container is kept as %s; remove it with docker rm -v %s", name, name))
}
