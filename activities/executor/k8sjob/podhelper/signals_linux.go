package podhelper

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// lastSignal is the highest number of a signal on Linux.
const lastSignal = syscall.Signal(64)

// kept lists signals that are of this process: those of its children and its terminal, and those by which the kernel or the
// runtime of Go report something.
var kept = map[syscall.Signal]bool{
	syscall.SIGCHLD: true, syscall.SIGURG: true, syscall.SIGPIPE: true, syscall.SIGPROF: true, syscall.SIGTTIN: true, syscall.SIGTTOU: true,
	syscall.SIGSEGV: true, syscall.SIGBUS: true, syscall.SIGFPE: true, syscall.SIGILL: true, syscall.SIGTRAP: true, syscall.SIGSYS: true,
	syscall.SIGKILL: true, syscall.SIGSTOP: true,
}

// signals are those that this process gets for the program.
type signals struct {
	caught   chan os.Signal
	stopping atomic.Bool
}

// catchSignals keeps signals from ending this process, from now on.
func catchSignals() *signals {
	s := &signals{caught: make(chan os.Signal, 64)}
	for number := syscall.Signal(1); number <= lastSignal; number++ {
		if !kept[number] {
			signal.Notify(s.caught, number)
		}
	}
	// A closed standard output is an error of a write then. The program would inherit a signal that is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return s
}

// forwardTo sends signals to the process group of a program, those included that have come before, until this process ends.
func (s *signals) forwardTo(pid int) {
	go func() {
		for caught := range s.caught {
			switch caught {
			case syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP:
				s.stopping.Store(true)
			}
			if number, ok := caught.(syscall.Signal); ok {
				_ = syscall.Kill(-pid, number) // The group may have ended.
			}
		}
	}()
}

// isStopping reports whether the program was asked to stop.
func (s *signals) isStopping() bool { return s.stopping.Load() }
