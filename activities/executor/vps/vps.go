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

// Executor runs tasks of type "vps". One Executor serves all nodes of a process.
type Executor struct {
	containers *container.Executor
	backends   map[string]Backend // by the backend name in specs

	mu sync.Mutex
	// of maps the ids of attempts that run, or were found as survivors, to their backends.
	backendByID map[string]Backend
}

var _ executor.Executor = (*Executor)(nil)

// New returns an Executor whose containers use the engine of another executor. virtual runs the virtual machines; it is
// nil if the node has none. The caller closes both.
func New(shared *container.Executor, virtual Backend) *Executor {
	e := &Executor{containers: shared, backends: map[string]Backend{v1.BackendDocker: newContainers(shared)}, backendByID: map[string]Backend{}}
	if virtual != nil {
		e.backends[v1.BackendQEMU] = virtual
	}
	return e
}

// Type returns "vps".
func (*Executor) Type() string { return v1.TypeVPS }

// Capabilities returns what the executor can do beyond Run.
func (e *Executor) Capabilities() executor.Capabilities {
	return executor.Capabilities{Available: e.Available, Steer: e, Enter: e.Enter, Capture: e, Survive: e, Restart: e.Restart}
}

// Available returns nil if at least one backend can start machines.
func (e *Executor) Available() error {
	var errs []error
	for _, backend := range e.backends {
		available := backend.Capabilities().Available
		if available == nil {
			return nil
		}
		err := available()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Run runs a machine on the backend that its spec names.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	backend, err := e.backendFor(a)
	if err != nil {
		return executor.Result{}, err
	}
	defer e.registerAttempt(a.ID, backend)()
	return backend.Run(ctx, a, spawned)
}

// Reattach continues a machine that an earlier worker started.
func (e *Executor) Reattach(ctx context.Context, a executor.Attempt) (executor.Result, error) {
	backend := e.find(a.ID)
	if backend == nil {
		var err error
		if backend, err = e.backendFor(a); err != nil {
			return executor.Result{}, err
		}
	}
	defer e.registerAttempt(a.ID, backend)()
	return backend.Reattach(ctx, a)
}

// Survivors returns the machines of all backends that earlier workers left. It skips a container engine that the node
// does not have.
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
			e.backendByID[l.ID] = backend
		}
		e.mu.Unlock()
		all = append(all, left...)
	}
	return all, nil
}

// Remove removes what is left of a machine.
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
	delete(e.backendByID, l.ID)
	e.mu.Unlock()
	return nil
}

// mayHaveLeft reports whether the node may have machines of a backend. A node without a container engine has no containers.
func (e *Executor) mayHaveLeft(name string) bool {
	return name != v1.BackendDocker || len(e.backends) == 1 || e.containers.IsInstalled()
}

// Restart stops a machine and starts it again with its disk.
func (e *Executor) Restart(ctx context.Context, id string) error {
	return e.withBackendOf(id, func(b Backend) error { return b.Restart(ctx, id) })
}

// Pause suspends a machine.
func (e *Executor) Pause(ctx context.Context, id string) error {
	return e.withBackendOf(id, func(b Backend) error { return b.Pause(ctx, id) })
}

// Resume resumes a suspended machine.
func (e *Executor) Resume(ctx context.Context, id string) error {
	return e.withBackendOf(id, func(b Backend) error { return b.Resume(ctx, id) })
}

// Enter returns access to the inside of a machine.
func (e *Executor) Enter(ctx context.Context, id string) (in executor.Inside, err error) {
	err = e.withBackendOf(id, func(b Backend) (err error) {
		in, err = b.Enter(ctx, id)
		return err
	})
	return in, err
}

// Capture writes the files of a machine to an archive.
func (e *Executor) Capture(ctx context.Context, id string, to io.Writer) (captured executor.Captured, err error) {
	err = e.withBackendOf(id, func(b Backend) (err error) {
		captured, err = b.Capture(ctx, id, to)
		return err
	})
	return captured, err
}

// CaptureImage writes the image of a virtual machine to an archive.
func (e *Executor) CaptureImage(ctx context.Context, image, registryAuth string, to io.Writer, say func(string)) (executor.Captured, error) {
	virtual := e.backends[v1.BackendQEMU]
	if virtual == nil {
		return executor.Captured{}, errNoVirtual
	}
	return virtual.CaptureImage(ctx, image, registryAuth, to, say)
}

// errNoVirtual reports that a node has no backend for virtual machines.
var errNoVirtual = errors.New("this node cannot run virtual machines; see the log of its worker")

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

// badSpec returns the error for a spec that no attempt can start with.
func badSpec(err error) error {
	return &executor.StartError{ExitCode: cannotRun, BadSpec: true, Err: fmt.Errorf("vps spec: %w", err)}
}

// cannotRun is the exit code for a command that cannot be started, as in a shell.
const cannotRun = 126

// find returns the backend of an attempt that runs or was found as a survivor, or nil.
func (e *Executor) find(id string) Backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.backendByID[id]
}

// registerAttempt records the backend of an attempt until release is called.
func (e *Executor) registerAttempt(id string, backend Backend) (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.backendByID[id] = backend
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.backendByID, id)
	}
}

// withBackendOf calls do with the backend of a running attempt.
func (e *Executor) withBackendOf(id string, do func(Backend) error) error {
	backend := e.find(id)
	if backend == nil {
		return executor.ErrNotRunning
	}
	return do(backend)
}
