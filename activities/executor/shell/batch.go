//go:build unix

package shell

import (
	"context"
	"fmt"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/pipes"
)

// batchRun runs a batch of attempts in one process tree. They also share their pipes, as long as
// none of them leaves a process behind that might continue to write to the pipes.
type batchRun struct {
	executor *Executor
	id       string
	lease    *executor.Lease
	// tree is nil before the first attempt.
	tree  *processTree
	pipes *pipes.Shared
	// begun reports that an attempt has run before, and left that the newest one left processes
	// behind.
	begun, left bool
}

// batch returns Batch, which systems other than Unix lack.
func (e *Executor) batch() func(string, *executor.Lease) (executor.Batch, error) { return e.Batch }

// Batch returns a batch of attempts that shares one process tree.
func (e *Executor) Batch(id string, lease *executor.Lease) (executor.Batch, error) {
	if e.closed.Load() {
		return nil, errClosed
	}
	if err := e.guard.ensure(e.trees); err != nil {
		return nil, err
	}
	return &batchRun{executor: e, id: id, lease: lease}, nil
}

// Run runs the next attempt of the batch, like Executor.Run.
func (b *batchRun) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	own := a.ID
	a.ID, a.Lease = b.id, b.lease
	if ctx.Err() != nil || a.Lease.Lost() {
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	}
	p, err := b.executor.program(a)
	if err != nil {
		return executor.Result{}, err
	}
	if b.tree == nil {
		// The limits of the first attempt apply, since all attempts of a batch belong to one task.
		if b.tree, err = b.executor.enclose(a, p.sandbox); err != nil {
			return executor.Result{}, err
		}
	}
	if b.pipes == nil {
		if b.pipes, err = pipes.NewShared(&b.executor.buffers); err != nil {
			return executor.Result{}, err
		}
	}
	if b.begun {
		if err := b.tree.next(); err != nil {
			return executor.Result{}, fmt.Errorf("enclose %s: %w", a.ID, err)
		}
	}
	b.begun, b.left = true, false
	b.pipes.Assign(a.Stdout, a.Stderr)
	result, err := newRunning(own, b.tree, a, b.pipes, b.killLeftovers).run(ctx, b.executor, p, spawned)
	if b.left {
		// A process outside the process tree may hold the pipes, too.
		b.pipes.Close()
		b.pipes = nil
	}
	return result, err
}

// killLeftovers ends what an attempt has left behind.
func (b *batchRun) killLeftovers() error {
	if b.tree.isEmpty() {
		return nil
	}
	b.left = true
	return b.tree.clear()
}

// Close releases the process tree.
func (b *batchRun) Close() error {
	if b.pipes != nil {
		b.pipes.Close()
		b.pipes = nil
	}
	if b.tree == nil {
		return nil
	}
	return b.tree.end()
}
