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

// Machines is the set of machines of one computer. They keep running whatever happens to the workers. Its methods are safe for
// concurrent use.
type Machines struct {
	mu   sync.Mutex
	all  map[string]*Machine // by id
	away error
	// changed is closed and replaced whenever something changes.
	changed chan struct{}
}

// Machine is an attempt of a Lasting.
type Machine struct {
	executor.Leftover
	// Starts counts the starts of the program, Restarts the calls of Restart, and Reattached how often a later worker continued
	// the attempt.
	Starts, Restarts, Reattached int
	// Removed reports that nothing of the machine is left. Result is how it ended if Running is false.
	Removed bool
	Result  executor.Result
	// Attended counts the calls of Run and Reattach in progress.
	Attended int
	// Attempt is the newest attempt that ran or continued the machine.
	Attempt executor.Attempt
}

// NewMachines returns a computer without machines.
func NewMachines() *Machines {
	return &Machines{all: map[string]*Machine{}, changed: make(chan struct{})}
}

// FailSurvivors makes Survivors fail with an error, or work again if err is nil.
func (m *Machines) FailSurvivors(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = err
	m.change()
}

// All returns the machines of a task in the order of their claims.
func (m *Machines) All(task string) []Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machinesOf(task)
}

// Await waits until condition returns true for the machines of a task, or ctx is done.
func (m *Machines) Await(ctx context.Context, task string, condition func([]Machine) bool) error {
	for {
		m.mu.Lock()
		found, changed := m.machinesOf(task), m.changed
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

// End makes the running machines of a task end by themselves with a result.
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

// machinesOf returns the machines of a task. The caller holds mu.
func (m *Machines) machinesOf(task string) []Machine {
	var found []Machine
	for _, one := range m.all {
		if one.Identity.Task == task {
			found = append(found, *one)
		}
	}
	slices.SortFunc(found, func(a, b Machine) int { return int(a.Identity.Claim - b.Identity.Claim) })
	return found
}

// change wakes the callers that wait for a change. The caller holds mu.
func (m *Machines) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Lasting is an executor of one worker whose attempts are Machines.
type Lasting struct {
	taskType string
	machines *Machines
}

// NewLasting returns an executor for a task type whose attempts are machines of a computer.
func NewLasting(taskType string, m *Machines) *Lasting { return &Lasting{taskType, m} }

// Type returns the task type given to NewLasting.
func (e *Lasting) Type() string { return e.taskType }

// Capabilities says that attempts outlive the worker, and can be restarted and entered.
func (e *Lasting) Capabilities() executor.Capabilities {
	return executor.Capabilities{Enter: e.Enter, Survive: e, Restart: e.Restart}
}

// Run starts a machine, which runs until ctx ends or End is called.
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

// Reattach continues a machine that an earlier worker left.
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

// Restart counts a restart of a machine.
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

// Survivors returns the remaining machines of a node.
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

// Enter returns the inside of a running machine; none of its methods is implemented.
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
	// ID is the ID of the attempt.
	ID string
}
