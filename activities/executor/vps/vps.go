package vps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container"
	v1 "switchyard/proto/switchyard/v1"
)

// Executor runs tasks of type "vps". One is enough for all nodes of a process.
type Executor struct {
	containers *container.Executor
	backends   map[string]Backend // by the backends of specs

	mu sync.Mutex
	// of are the backends of attempts that run, or were found, by their ids.
	of map[string]Backend
}

var (
	_ executor.Lasting   = (*Executor)(nil)
	_ executor.Steerer   = (*Executor)(nil)
	_ executor.Available = (*Executor)(nil)
	_ executor.Enterer   = (*Executor)(nil)
	_ executor.Capturer  = (*Executor)(nil)
)

// New returns an Executor whose containers share an engine with another executor, and whose virtual machines are those of a backend;
// nil: it has none. Both are closed by whoever made them.
func New(shared *container.Executor, virtual Backend) *Executor {
	e := &Executor{containers: shared, backends: map[string]Backend{v1.BackendDocker: newContainers(shared)}, of: map[string]Backend{}}
	if virtual != nil {
		e.backends[v1.BackendQEMU] = virtual
	}
	return e
}

// Type returns "vps".
func (*Executor) Type() string { return v1.TypeVPS }

// Available returns nil when machines of a kind can be started.
func (e *Executor) Available() error {
	var errs []error
	for _, backend := range e.backends {
		err := backend.Available()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Run runs a machine by the backend that its spec names.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	backend, err := e.backendFor(a)
	if err != nil {
		return executor.Result{}, err
	}
	defer e.hold(a.ID, backend)()
	return backend.Run(ctx, a, spawned)
}

// Reattach continues with a machine that an earlier worker has started.
func (e *Executor) Reattach(ctx context.Context, a executor.Attempt) (executor.Result, error) {
	backend := e.find(a.ID)
	if backend == nil {
		var err error
		if backend, err = e.backendFor(a); err != nil {
			return executor.Result{}, err
		}
	}
	defer e.hold(a.ID, backend)()
	return backend.Reattach(ctx, a)
}

// Survivors are the machines of all kinds that earlier workers have left. An engine of containers that the node does not have has
// left none.
func (e *Executor) Survivors(ctx context.Context, node string) ([]executor.Leftover, error) {
	var all []executor.Leftover
	for name, backend := range e.backends {
		if !e.mayHaveLeft(name) {
			continue
		}
		left, err := backend.Survivors(ctx, node)
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		for _, l := range left {
			e.of[l.ID] = backend
		}
		e.mu.Unlock()
		all = append(all, left...)
	}
	return all, nil
}

// Remove ends what is left of a machine.
func (e *Executor) Remove(ctx context.Context, l executor.Leftover) error {
	for name, backend := range e.backends {
		if of := e.find(l.ID); of != nil && of != backend || of == nil && !e.mayHaveLeft(name) {
			continue
		}
		if err := backend.Remove(ctx, l); err != nil {
			return err
		}
	}
	e.mu.Lock()
	delete(e.of, l.ID)
	e.mu.Unlock()
	return nil
}

// mayHaveLeft reports whether machines of a backend may be on the node: those of an engine of containers only if it has one.
func (e *Executor) mayHaveLeft(name string) bool {
	return name != v1.BackendDocker || len(e.backends) == 1 || e.containers.IsInstalled()
}

// Stop ends a machine gracefully, as asked.
func (e *Executor) Stop(ctx context.Context, id string) error {
	return e.with(id, func(b Backend) error { return b.Stop(ctx, id) })
}

// Restart stops a machine and starts it again with its disk.
func (e *Executor) Restart(ctx context.Context, id string) error {
	return e.with(id, func(b Backend) error { return b.Restart(ctx, id) })
}

// Pause suspends a machine.
func (e *Executor) Pause(ctx context.Context, id string) error {
	return e.with(id, func(b Backend) error { return b.Pause(ctx, id) })
}

// Resume lets a machine continue.
func (e *Executor) Resume(ctx context.Context, id string) error {
	return e.with(id, func(b Backend) error { return b.Resume(ctx, id) })
}

// Enter returns the inside of a machine.
func (e *Executor) Enter(ctx context.Context, id string) (in executor.Inside, err error) {
	err = e.with(id, func(b Backend) (err error) {
		in, err = b.Enter(ctx, id)
		return err
	})
	return in, err
}

// Capture writes the files of a machine to an archive.
func (e *Executor) Capture(ctx context.Context, id string, to io.Writer) (captured executor.Captured, err error) {
	err = e.with(id, func(b Backend) (err error) {
		capturer, ok := b.(executor.Capturer)
		if !ok {
			return &executor.Refusal{Text: "machines of its kind cannot be captured"}
		}
		captured, err = capturer.Capture(ctx, id, to)
		return err
	})
	return captured, err
}

// CaptureImage writes the image of a virtual machine to an archive.
func (e *Executor) CaptureImage(ctx context.Context, image, registryAuth string, to io.Writer, say func(string)) (executor.Captured, error) {
	capturer, ok := e.backends[v1.BackendQEMU].(executor.Capturer)
	if !ok {
		return executor.Captured{}, errNoVirtual
	}
	return capturer.CaptureImage(ctx, image, registryAuth, to, say)
}

// errNoVirtual says that a node has no backend of virtual machines.
var errNoVirtual = errors.New("this node cannot run virtual machines; the log of its worker says why")

// backendFor returns the backend that the spec of an attempt names.
func (e *Executor) backendFor(a executor.Attempt) (Backend, error) {
	spec := &v1.VpsSpec{}
	if err := container.DecodeSpec(a.Spec, spec); err != nil {
		return nil, badSpec(err)
	}
	name := cmp.Or(spec.GetBackend(), v1.BackendDocker)
	if backend := e.backends[name]; backend != nil {
		return backend, nil
	}
	if name == v1.BackendQEMU {
		return nil, errNoVirtual
	}
	return nil, badSpec(fmt.Errorf("backend %q is unknown; use %q or %q", name, v1.BackendDocker, v1.BackendQEMU))
}

// badSpec is the error of a spec that no attempt can start with.
func badSpec(err error) error {
	return &executor.StartError{ExitCode: cannotRun, BadSpec: true, Err: fmt.Errorf("vps spec: %w", err)}
}

// cannotRun is the exit code of what cannot be started, as a shell has it.
const cannotRun = 126

// find returns the backend of an attempt that runs, or was found; nil: there is none.
func (e *Executor) find(id string) Backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[id]
}

// hold notes the backend of an attempt until the function that it returns is called.
func (e *Executor) hold(id string, backend Backend) (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of[id] = backend
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.of, id)
	}
}

// with calls a function with the backend of an attempt that runs.
func (e *Executor) with(id string, do func(Backend) error) error {
	backend := e.find(id)
	if backend == nil {
		return executor.ErrNotRunning
	}
	return do(backend)
}
