package podhelper

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// lastSignal is the highest signal number on Linux.
const lastSignal = syscall.Signal(64)

// kept lists signals that belong to this process: those of its children and its terminal, and those by which the kernel
// or the Go runtime report something.
var kept = map[syscall.Signal]bool{
	syscall.SIGCHLD: true, syscall.SIGURG: true, syscall.SIGPIPE: true, syscall.SIGPROF: true, syscall.SIGTTIN: true, syscall.SIGTTOU: true,
	syscall.SIGSEGV: true, syscall.SIGBUS: true, syscall.SIGFPE: true, syscall.SIGILL: true, syscall.SIGTRAP: true, syscall.SIGSYS: true,
	syscall.SIGKILL: true, syscall.SIGSTOP: true,
}

// signals collects the signals that this process receives on behalf of the program.
type signals struct {
	caught   chan os.Signal
	stopping atomic.Bool
}

// catchSignals keeps signals from ending this process from now on.
func catchSignals() *signals {
	s := &signals{caught: make(chan os.Signal, 64)}
	for number := syscall.Signal(1); number <= lastSignal; number++ {
		if !kept[number] {
			signal.Notify(s.caught, number)
		}
	}
	// With a handler for SIGPIPE, a closed standard output is a write error. Ignoring the signal would be inherited by
	// the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return s
}

// forwardTo forwards signals to the process group of a program until this process ends, including signals caught
// before.
func (s *signals) forwardTo(pid int) {
	go func() {
		for caught := range s.caught {
			switch caught {
			case syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP:
				s.stopping.Store(true)
			}
			if number, ok := caught.(syscall.Signal); ok {
				_ = syscall.Kill(-pid, number) // the group may have ended
			}
		}
	}()
}

// isStopping reports whether the program was asked to stop.
func (s *signals) isStopping() bool { return s.stopping.Load() }
