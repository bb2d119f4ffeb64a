package qemu

import (
	"errors"
	"fmt"
	"syscall"

	"switchyard/activities/executor"
)

// exit describes how QEMU ended.
type exit struct {
	// code is its exit code, or 128 plus the number of the signal that ended it. It is valid if isKnown is set.
	code    int
	isKnown bool
	// isOOM reports whether the kernel killed QEMU for lack of memory.
	isOOM bool
}

// Reasons of SHUTDOWN events, from qapi/run-state.json of QEMU.
const (
	reasonGuest  = "guest-shutdown"
	reasonPanic  = "guest-panic"
	reasonSignal = "host-signal" // QEMU then exits with code 0
	reasonQuit   = "host-qmp-quit"
)

// signalled is added to a signal number to form an exit code.
const signalled = 128

// ending is how the end of a machine is reported.
type ending struct {
	result executor.Result
	// notice is a line for the log, or "".
	notice string
	// err is set if the node is at fault.
	err error
}

// endingOf classifies the end of a machine that was not stopped, from the exit of QEMU and the reason of the last
// SHUTDOWN event, or "" if none was received.
func endingOf(x exit, reason, lastWords string) ending {
	switch {
	case !x.isKnown:
		return ending{err: errors.New("the outcome of the virtual machine is unknown: QEMU left no exit code (the node may have been restarted)")}
	case x.code == signalled+int(syscall.SIGKILL):
		e := ending{result: killedBy(syscall.SIGKILL), notice: "QEMU was killed on the node by SIGKILL"}
		if e.result.OOMKilled = x.isOOM; x.isOOM {
			e.notice = "the kernel killed QEMU because the machine exceeded its memory limit"
		}
		return e
	case x.code != 0:
		return ending{err: fmt.Errorf("QEMU failed with exit code %d: %s", x.code, lastWords)}
	}
	switch reason {
	case reasonSignal, reasonQuit:
		return ending{result: killedBy(syscall.SIGTERM), notice: "QEMU was asked to quit on the node"}
	case reasonPanic:
		return ending{result: executor.Result{ExitCode: 1}, notice: "the kernel of the machine panicked"}
	case reasonGuest:
		return ending{notice: "the machine was shut down from inside"}
	}
	return ending{notice: "the machine was shut down"} // no worker was connected
}

// signalNames holds the names of the signals that end QEMU. No library has them on every system that the package is
// built for.
var signalNames = map[syscall.Signal]string{syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM"}

// killedBy returns the result of a program that was ended by a signal.
func killedBy(s syscall.Signal) executor.Result {
	return executor.Result{ExitCode: signalled + int(s), Signal: signalNames[s]}
}

// result returns the outcome of the attempt once the machine has ended.
func (m *machine) result() (executor.Result, error) {
	m.mu.Lock()
	killed, broken, reason := m.killed, m.isBroken, m.reason
	m.mu.Unlock()
	state := m.lifecycle.State()
	switch {
	case state.IsLeft():
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	case state.IsStopped():
		r := executor.Result{}
		if killed || m.exit.isKnown && m.exit.code != 0 {
			r = killedBy(syscall.SIGKILL)
		}
		r.Stopped = true
		return r, nil
	case broken:
		return executor.Result{}, fmt.Errorf("QEMU could not resume the virtual machine: %s", m.folder.lastWords())
	}
	end := endingOf(m.exit, reason, m.folder.lastWords())
	if end.notice != "" {
		m.attempt.Notify(end.notice)
	}
	return end.result, end.err
}
