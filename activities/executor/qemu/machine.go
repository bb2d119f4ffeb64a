package qemu

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"switchyard/activities/executor"
	"switchyard/activities/executor/guest"
)

// machine is the virtual machine of an attempt from its start, or the start of a worker, to its end.
type machine struct {
	e       *Executor
	attempt executor.Attempt
	record  record
	folder  folder
	monitor *monitor
	console *console

	// life is that of what belongs to the machine, which outlives the context of Run; giveUp ends it.
	life   context.Context
	giveUp context.CancelCauseFunc
	calls  sync.WaitGroup

	// capturing is held while its disk is copied and sent.
	capturing sync.Mutex

	// stopAsked is closed when the attempt is to end as asked.
	stopAsked chan struct{}
	// ended is closed when exit is known.
	ended chan struct{}
	exit  exit

	// steering is held while it is suspended, resumed, restarted or captured. untilStop ends when it is being stopped, which waits for
	// steering.
	steering  sync.Mutex
	untilStop context.Context
	beginStop context.CancelFunc

	login login
	guest *guest.Guest
	// isAdopted says that an earlier worker has started it.
	isAdopted bool

	mu sync.Mutex
	// over says that the machine has ended, stopping that it is being stopped, asked that this is for Stop, and left that it is left to
	// a later worker.
	over, stopping, asked, left bool
	paused                      bool
	// killed says that this process has ended it by force.
	killed bool
	// isBroken says that this was because QEMU could not continue.
	isBroken bool
	// reason is that of the newest SHUTDOWN event, or "".
	reason string
	// restarting is the restart that is under way, or nil.
	restarting *restart
}

// newMachine returns the machine of an attempt in a folder.
func newMachine(ctx context.Context, e *Executor, a executor.Attempt, r record, f folder) *machine {
	if a.Stdout == nil {
		a.Stdout = io.Discard
	}
	a.Lease = nil // it bounds the start only
	m := &machine{
		e: e, attempt: a, record: r, folder: f, monitor: newMonitor(f), stopAsked: make(chan struct{}), ended: make(chan struct{}),
	}
	m.console = &console{path: f.file(consoleFile), to: a.Stdout, full: func() { a.Notify(consoleFull) }}
	m.life, m.giveUp = context.WithCancelCause(context.WithoutCancel(ctx))
	m.untilStop, m.beginStop = context.WithCancel(m.life)
	m.guest = m.newGuest()
	return m
}

var (
	// errClosed ends what belongs to a machine that has ended.
	errClosed = errors.New("the machine has ended")
	// errStopAsked ends an attempt by Stop.
	errStopAsked = errors.New("it is stopped as asked")
)

// enter makes a machine that has started known.
func (m *machine) enter() {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	m.e.running[m.attempt.ID] = m
	delete(m.e.starting, m.attempt.ID)
}

// close removes what is left of the attempt, unless it is left to a later worker.
func (m *machine) close() error {
	m.giveUp(errClosed)
	m.calls.Wait()
	defer func() {
		m.e.mu.Lock()
		defer m.e.mu.Unlock()
		if m.e.running[m.attempt.ID] == m {
			delete(m.e.running, m.attempt.ID)
		}
	}()
	if m.isLeft() {
		return nil
	}
	return destroy(m.folder, m.record)
}

// destroy ends what is left of a machine, and removes its folder.
func destroy(f folder, r record) error {
	if err := f.kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	for f.isRunning() {
		if ctx.Err() != nil {
			return errors.New("QEMU does not end although it was killed")
		}
		sleep(ctx, endPoll)
	}
	// The rest of its launcher ends by itself, where there is no group.
	if err := clearGroup(r.Cgroup); err != nil {
		return err
	}
	f.awaitExitCode(ctx)
	return os.RemoveAll(string(f))
}

// isEnding reports whether the machine has ended, or is being stopped.
func (m *machine) isEnding() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over || m.stopping
}

// isLeft reports whether the machine is left to a later worker.
func (m *machine) isLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left
}

// isPaused reports whether the machine is suspended.
func (m *machine) isPaused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.paused
}

// isRestarting reports whether a restart is under way.
func (m *machine) isRestarting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.restarting != nil
}
