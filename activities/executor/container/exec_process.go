package container

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	hangupSignal = syscall.SIGHUP
	killSignal   = syscall.SIGKILL
)

// hangupSteps are the signals for a command whose caller has left, and how long the command may take to
// end after each.
var hangupSteps = []struct {
	signal   syscall.Signal
	patience time.Duration
}{{hangupSignal, hangupPatience}, {killSignal, killedPatience}}

// findProcess finds the process of a command. The engine starts the process after it has answered the
// call.
func (x *execution) findProcess(ctx context.Context) {
	for pause := time.Millisecond; ; pause = min(2*pause, pingAgain) {
		seen, err := x.inspect(ctx)
		if err == nil && seen.Pid > 0 {
			found := findProcess(seen.Pid, x.r.id)
			x.mu.Lock()
			x.found = found
			x.mu.Unlock()
			return
		}
		select {
		case <-x.ended:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (x *execution) process() process {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.found
}

// hangUp ends a command whose caller has left.
func (x *execution) hangUp(ctx context.Context, started <-chan struct{}) {
	select {
	case <-started:
	case <-x.ended:
	case <-time.After(startPatience):
	}
	for _, step := range hangupSteps {
		if err := x.process().signalGroup(step.signal); err != nil {
			x.r.e.logger.Warn("cannot end a command in a container", "container", x.r.name, "error", err)
		}
		select {
		case <-x.ended:
			return
		case <-ctx.Done():
		case <-time.After(step.patience):
		}
	}
	x.conn.Close() // ends its output
}

// passSignals forwards the caller's signals to the command.
func (x *execution) passSignals(ctx context.Context, started <-chan struct{}) {
	select {
	case <-started:
	case <-ctx.Done():
		return
	}
	for {
		select {
		case name, ok := <-x.command.Signals:
			if !ok {
				return
			}
			n := slices.Index(signals, strings.TrimPrefix(strings.ToUpper(name), "SIG"))
			if n < 0 {
				continue
			}
			if err := x.process().signal(syscall.Signal(n + 1)); err != nil {
				x.r.e.logger.Warn("cannot signal a command in a container", "container", x.r.name, "signal", name, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// recordStarted records whether the command ever had a process.
func (x *execution) recordStarted(pid int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ran = pid > 0
}

// hasRun reports whether the engine has started the command.
func (x *execution) hasRun() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ran
}
