package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"switchyard/activities/executor"
)

// Survivors returns the containers of a node's attempts that this process did not start.
func (e *Executor) Survivors(ctx context.Context, node string) ([]executor.Leftover, error) {
	if err := e.Available(); err != nil {
		return nil, err
	}
	ctx, done := e.engine.guard(ctx)
	defer done()
	if err := e.removeVolumes(ctx); err != nil {
		return nil, fmt.Errorf("remove the volumes of ended containers: %w", causeOf(ctx, err))
	}
	found, err := e.list(ctx, labelNode, node)
	if err != nil {
		return nil, fmt.Errorf("list the containers of node %s: %w", node, causeOf(ctx, err))
	}
	var left []executor.Leftover
	for _, c := range found {
		id, of, ok := identity(c.Labels)
		if !ok || e.find(id) != nil {
			continue
		}
		l := executor.Leftover{ID: id, Identity: of}
		seen, err := e.docker.ContainerInspect(ctx, c.ID)
		switch {
		case cerrdefs.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("inspect container %s: %w", c.ID, causeOf(ctx, err))
		case seen.State != nil:
			l.Running = alive(seen.State)
			l.StartedAt = startedAt(seen.State)
		}
		if seen.Config != nil {
			l.Env = variables(seen.Config.Env)
		}
		left = append(left, l)
	}
	return left, nil
}

// variables returns environment entries as a map from names to values.
func variables(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// removeVolumes removes volumes that containers have left behind. Volumes are removed with their containers, unless the engine
// ends at that moment.
func (e *Executor) removeVolumes(ctx context.Context) error {
	left, err := e.docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelMount), filters.Arg("dangling", "true"))})
	if err != nil {
		return err
	}
	for _, v := range left.Volumes {
		// A volume that a container has started to use meanwhile is kept.
		if err := e.docker.VolumeRemove(ctx, v.Name, false); err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) {
			e.logger.Warn("a volume could not be removed; the next worker tries again", "volume", v.Name, "error", causeOf(ctx, err))
		}
	}
	return nil
}

// list returns the containers of the kind that have a label, except for those kept for inspection.
func (e *Executor) list(ctx context.Context, label, value string) ([]container.Summary, error) {
	all, err := e.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label+"="+value))})
	if err != nil {
		return nil, err
	}
	var found []container.Summary
	for _, c := range all {
		if e.kind.hasMade(c.Labels) && (len(c.Names) == 0 || !strings.HasSuffix(c.Names[0], keptSuffix)) {
			found = append(found, c)
		}
	}
	return found, nil
}

// startedAt returns the start time of a container, or the zero time if it never started.
func startedAt(s *container.State) time.Time {
	at, err := time.Parse(time.RFC3339Nano, s.StartedAt)
	if err != nil || at.Year() <= 1 {
		return time.Time{}
	}
	return at
}

// Reattach continues the container of an attempt that an earlier worker started, and removes it in the end. It ends the commands
// of Exec that the earlier worker left in the container. It waits for the engine as long as ctx lasts. Output arrives line by
// line. If the container ended in the meantime by a signal that was not sent here, the engine or the machine may have shut down,
// so Reattach reports a fault of the node.
func (e *Executor) Reattach(ctx context.Context, a executor.Attempt) (executor.Result, error) {
	if a.Notify == nil {
		a.Notify = func(string) {}
	}
	if err := e.engine.await(ctx); err != nil {
		return executor.Result{}, fmt.Errorf("reattach to %s: %w", a.ID, err)
	}
	guarded, done := e.engine.guard(context.WithoutCancel(ctx))
	defer done()
	found, err := e.list(guarded, labelID, a.ID)
	if err != nil {
		return executor.Result{}, fmt.Errorf("find the container of %s: %w", a.ID, causeOf(guarded, err))
	}
	if len(found) == 0 {
		return executor.Result{}, executor.ErrNotRunning
	}
	c, err := e.docker.ContainerInspect(guarded, found[0].ID)
	if err != nil || c.State == nil || c.Config == nil {
		return executor.Result{}, fmt.Errorf("inspect the container of %s: %w", a.ID, causeOf(guarded, err))
	}
	r := newRunning(ctx, e, a, strings.TrimPrefix(c.Name, "/"))
	r.id, r.image, r.keep = c.ID, c.Config.Labels[labelImage], c.Config.Labels[labelKeep] != ""
	r.lifecycle.SetPaused(c.State.Paused)
	r.atHome, r.holdsMounts = c.Config.Labels[labelAtHome] != "", hasOpenMounts(c.HostConfig)
	e.endings.watch(r.id, numberOf(cmp.Or(a.Signal, c.Config.StopSignal)))
	if startedAt(c.State).IsZero() {
		r.close()
		return executor.Result{}, executor.ErrNotRunning
	}
	if c.State.Paused && !a.Suspended {
		// The earlier worker ended while it captured the container.
		r.resumeAfterCapture()
	}
	if alive(c.State) {
		r.main.record(r.id, c)
	} else if !c.State.OOMKilled {
		// The exit code is known, but not the reason.
		r.loss.mark()
	}
	orphans := execOrphans{docker: e.docker, engine: e.engine, logger: e.logger, container: r.id, name: r.name, id: a.ID}
	r.calls.Go(func() { orphans.endAll(r.life, c.ExecIDs) })
	r.register()
	defer r.close()
	return r.follow(ctx)
}

// Remove ends and removes the containers of an attempt. If the engine does not do it, Remove kills the processes of the Workload.
func (e *Executor) Remove(ctx context.Context, l executor.Leftover) error {
	err := e.removeAll(ctx, l)
	if err != nil {
		err = errors.Join(err, killContainer(l.Workload.GetContainer()))
	}
	return err
}

// removeAll ends and removes the containers of an attempt through the engine.
func (e *Executor) removeAll(ctx context.Context, l executor.Leftover) error {
	if err := e.Available(); err != nil {
		return err
	}
	ctx, done := e.engine.guard(ctx)
	defer done()
	found, err := e.list(ctx, labelID, l.ID)
	if err != nil {
		return fmt.Errorf("find the container of %s: %w", l.ID, causeOf(ctx, err))
	}
	for _, c := range found {
		if c.State == container.StateRunning {
			e.stopLeftover(ctx, c.ID)
		}
		if err := e.removeNow(ctx, c.ID); err != nil {
			return fmt.Errorf("remove the container of %s: %w", l.ID, err)
		}
	}
	return nil
}

// leftoverGrace is how long an unwanted container may take to end after its stop signal.
const leftoverGrace = 2 * time.Second

// stopLeftover sends a container its stop signal and waits briefly for its end.
func (e *Executor) stopLeftover(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, leftoverGrace+endPatience)
	defer cancel()
	seconds := int(leftoverGrace.Seconds())
	_ = e.docker.ContainerStop(ctx, id, container.StopOptions{Timeout: &seconds}) // its removal ends it, too
}
