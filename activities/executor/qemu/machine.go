package qemu

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"switchyard/activities/executor"
	"switchyard/activities/executor/guest"
	"switchyard/activities/executor/lifecycle"
)

// machine is the virtual machine of an attempt, from its start or its adoption by this worker to its end.
type machine struct {
	e       *Executor
	attempt executor.Attempt
	record  record
	folder  folder
	monitor *monitor
	console *console

	// life is the context of the machine's goroutines. It outlives the context of Run; giveUp ends it.
	life   context.Context
	giveUp context.CancelCauseFunc
	calls  sync.WaitGroup

	// capturing is held while the disk is copied and sent.
	capturing sync.Mutex

	// ended is closed when exit is set.
	ended chan struct{}
	exit  exit

	// steering is held while the machine is suspended, resumed, restarted or captured. untilStop ends when a stop or
	// a hand-over begins, which then waits for steering.
	steering  sync.Mutex
	untilStop context.Context
	beginStop context.CancelFunc

	login login
	guest *guest.Guest
	// isAdopted reports whether an earlier worker started the machine.
	isAdopted bool

	lifecycle lifecycle.Lifecycle

	mu sync.Mutex
	// killed reports whether this process has ended the machine by force.
	killed bool
	// isBroken reports whether that was because QEMU could not continue.
	isBroken bool
	// reason is the reason of the latest SHUTDOWN event, or "".
	reason string
}

// newMachine returns the machine of an attempt whose files are in folder f.
func newMachine(ctx context.Context, e *Executor, a executor.Attempt, r record, f folder) *machine {
	if a.Stdout == nil {
		a.Stdout = io.Discard
	}
	a.Lease = nil // the lease covers the start only
	m := &machine{
		e: e, attempt: a, record: r, folder: f, monitor: newMonitor(f), ended: make(chan struct{}),
	}
	m.console = &console{path: f.file(consoleFile), to: a.Stdout, full: func() { a.Notify(consoleFull) }}
	m.life, m.giveUp = context.WithCancelCause(context.WithoutCancel(ctx))
	m.untilStop, m.beginStop = context.WithCancel(m.life)
	m.guest = m.newGuest()
	return m
}

// errClosed ends the goroutines of a machine that has ended.
var errClosed = errors.New("the machine has ended")

// register registers a started machine with the executor.
func (m *machine) register() {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	m.e.running[m.attempt.ID] = m
	delete(m.e.starting, m.attempt.ID)
}

// close removes what is left of the attempt, unless the machine is left to a later worker.
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
	if m.lifecycle.State().IsLeft() {
		return nil
	}
	return destroy(m.folder, m.record)
}

// destroy ends what still runs of a machine and removes its folder.
func destroy(f folder, r record) error {
	if err := f.kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	for f.isRunning() {
		if ctx.Err() != nil {
			return errors.New("QEMU did not exit after SIGKILL")
		}
		sleep(ctx, endPoll)
	}
	// The rest of the launcher ends by itself. If it were killed first, the exit code would be awaited in vain.
	f.awaitExitCode(ctx)
	if err := clearGroup(r.Cgroup); err != nil {
		return err
	}
	return os.RemoveAll(string(f))
}

// isEnding reports whether the machine has ended or is being stopped.
func (m *machine) isEnding() bool { return m.lifecycle.State().IsEnding() }

// isPaused reports whether the machine is suspended.
func (m *machine) isPaused() bool { return m.lifecycle.State().Paused }
