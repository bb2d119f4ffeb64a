package fake

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"switchyard/activities/executor"
)

// Machines are the machines of one computer. They run whatever becomes of the workers. Its methods may be called from several
// goroutines.
type Machines struct {
	mu   sync.Mutex
	all  map[string]*Machine // by id
	away error
	// changed is closed and replaced whenever something changes.
	changed chan struct{}
}

// Machine is an attempt of a Lasting executor.
type Machine struct {
	executor.Leftover
	// Starts counts how often its program was started, Restarts how often it was started again, and Reattached how often a worker
	// continued it.
	Starts, Restarts, Reattached int
	// Removed says that nothing is left of it, and Result is how it has ended if Running is false.
	Removed bool
	Result  executor.Result
	// stopped is set by Stop.
	stopped bool
	// Attended counts the calls of Run and Reattach under way.
	Attended int
	// Attempt is the newest that ran or continued it.
	Attempt executor.Attempt
}

// NewMachines returns a computer without machines.
func NewMachines() *Machines {
	return &Machines{all: map[string]*Machine{}, changed: make(chan struct{})}
}

// Away has Survivors fail; nil: it does not any more.
func (m *Machines) Away(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = err
	m.change()
}

// All returns the machines of a task, in the order of their claims.
func (m *Machines) All(task string) []Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(task)
}

// Await waits until a condition is true of the machines of a task, or ctx is done.
func (m *Machines) Await(ctx context.Context, task string, condition func([]Machine) bool) error {
	for {
		m.mu.Lock()
		found, changed := m.of(task), m.changed
		m.mu.Unlock()
		if condition(found) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// End ends the running machines of a task by themselves.
func (m *Machines) End(task string, r executor.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.all {
		if one.Identity.Task == task && one.Running {
			one.Running, one.Result = false, r
		}
	}
	m.change()
}

// of returns the machines of a task. The caller holds mu.
func (m *Machines) of(task string) []Machine {
	var found []Machine
	for _, one := range m.all {
		if one.Identity.Task == task {
			found = append(found, *one)
		}
	}
	slices.SortFunc(found, func(a, b Machine) int { return int(a.Identity.Claim - b.Identity.Claim) })
	return found
}

// change wakes who waits for a change. The caller holds mu.
func (m *Machines) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Lasting is an executor of one worker whose attempts are Machines.
type Lasting struct {
	taskType string
	machines *Machines
}

var (
	_ executor.Lasting = (*Lasting)(nil)
	_ executor.Enterer = (*Lasting)(nil)
)

// NewLasting returns an executor for a task type whose attempts are machines of a computer.
func NewLasting(taskType string, m *Machines) *Lasting { return &Lasting{taskType, m} }

// Type is the task type given to NewLasting.
func (e *Lasting) Type() string { return e.taskType }

// Run starts a machine, which runs until ctx ends, or End is called.
func (e *Lasting) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	if ctx.Err() != nil || a.Lease.Lost() {
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	}
	m := e.machines
	m.mu.Lock()
	one := &Machine{
		Leftover: executor.Leftover{ID: a.ID, Identity: a.Identity, Running: true, StartedAt: time.Now(), Env: maps.Clone(a.Env)},
		Starts:   1,
	}
	m.all[a.ID] = one
	m.mu.Unlock()
	spawned()
	return e.attend(ctx, one, a), nil
}

// Reattach continues a machine that an earlier worker has left.
func (e *Lasting) Reattach(ctx context.Context, a executor.Attempt) (executor.Result, error) {
	m := e.machines
	m.mu.Lock()
	one := m.all[a.ID]
	if one == nil || one.Removed {
		m.mu.Unlock()
		return executor.Result{}, executor.ErrNotRunning
	}
	one.Reattached++
	m.mu.Unlock()
	return e.attend(ctx, one, a), nil
}

// attend waits for the end of a machine.
func (e *Lasting) attend(ctx context.Context, one *Machine, a executor.Attempt) executor.Result {
	m := e.machines
	m.mu.Lock()
	defer m.mu.Unlock()
	one.Attempt = a
	one.Attended++
	m.change()
	defer func() { one.Attended--; m.change() }()
	for {
		switch {
		case !one.Running || one.Removed:
			one.Removed = true
			return one.Result
		case one.stopped:
			one.Running, one.Removed = false, true
			return executor.Result{ExitCode: 143, Signal: "SIGTERM", Stopped: true, StoppedAsAsked: true}
		case ctx.Err() != nil && errors.Is(context.Cause(ctx), executor.ErrLetGo):
			return executor.Result{ExitCode: -1, Stopped: true}
		case ctx.Err() != nil:
			one.Running, one.Removed = false, true
			return executor.Result{ExitCode: 143, Signal: "SIGTERM", Stopped: true}
		}
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		m.mu.Lock()
	}
}

// Stop ends a machine.
func (e *Lasting) Stop(_ context.Context, id string) error {
	m := e.machines
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.all[id]
	if one == nil || !one.Running {
		return executor.ErrNotRunning
	}
	one.stopped = true
	m.change()
	return nil
}

// Restart counts that a machine was started again.
func (e *Lasting) Restart(_ context.Context, id string) error {
	m := e.machines
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.all[id]
	if one == nil || !one.Running {
		return executor.ErrNotRunning
	}
	one.Restarts++
	m.change()
	return nil
}

// Survivors are the machines of a node that are left.
func (e *Lasting) Survivors(_ context.Context, node string) ([]executor.Leftover, error) {
	m := e.machines
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		return nil, m.away
	}
	var left []executor.Leftover
	for _, one := range m.all {
		if !one.Removed && one.Identity.Node == node {
			left = append(left, one.Leftover)
		}
	}
	return left, nil
}

// Remove ends a machine.
func (e *Lasting) Remove(_ context.Context, l executor.Leftover) error {
	m := e.machines
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[l.ID]; one != nil {
		one.Running, one.Removed = false, true
	}
	m.change()
	return nil
}

// Enter returns an inside without methods of a machine that runs.
func (e *Lasting) Enter(_ context.Context, id string) (executor.Inside, error) {
	m := e.machines
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.all[id]; one == nil || !one.Running {
		return nil, executor.ErrNotRunning
	}
	return Inside{ID: id}, nil
}

// Inside is the inside of a Machine. Only its ID may be used.
type Inside struct {
	executor.Inside
	// ID is that of the attempt.
	ID string
}
