package qemu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"switchyard/activities/executor"
)

// Survivors returns the machines of a node's attempts that this process does not run.
func (e *Executor) Survivors(_ context.Context, node string) ([]executor.Leftover, error) {
	all, err := folders(e.opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("look for virtual machines of node %s: %w", node, err)
	}
	var left []executor.Leftover
	for _, f := range all {
		r, err := f.readRecord()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being removed
		}
		if err != nil {
			e.logger.Warn("unknown folder among the virtual machines; remove it if it is not needed", "folder", string(f), "error", err)
			continue
		}
		if r.Identity.Node != node || e.isOwn(r.ID) {
			continue
		}
		left = append(left, executor.Leftover{ID: r.ID, Identity: r.Identity, Running: f.isRunning(), StartedAt: r.StartedAt, Env: r.Env})
	}
	return left, nil
}

// Reattach continues the machine of an attempt that an earlier worker started, and removes it in the end.
func (e *Executor) Reattach(ctx context.Context, a executor.Attempt) (executor.Result, error) {
	if a.Notify == nil {
		a.Notify = func(string) {}
	}
	f := e.folderOf(a.ID)
	r, err := f.readRecord()
	if errors.Is(err, fs.ErrNotExist) {
		return executor.Result{}, executor.ErrNotRunning
	}
	if err != nil {
		return executor.Result{}, fmt.Errorf("adopt %s: %w", a.ID, err)
	}
	if r.StartedAt.IsZero() {
		return executor.Result{}, errors.Join(executor.ErrNotRunning, destroy(f, r))
	}
	m := newMachine(ctx, e, a, r, f)
	m.isAdopted = true
	m.register()
	return m.follow(ctx)
}

// Remove ends and removes the machine of an attempt.
func (e *Executor) Remove(_ context.Context, l executor.Leftover) error {
	f := e.folderOf(l.ID)
	r, err := f.readRecord()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the virtual machine of %s: %w", l.ID, err)
	}
	if err := destroy(f, r); err != nil {
		return fmt.Errorf("remove the virtual machine of %s: %w", l.ID, err)
	}
	return nil
}

// folderOf returns the folder of an attempt's machine.
func (e *Executor) folderOf(id string) folder {
	return folder(filepath.Join(e.opts.Dir, folderName(id)))
}
