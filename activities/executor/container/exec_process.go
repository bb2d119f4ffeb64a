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

// hangupSteps are what a command is sent whose caller is gone, and how long it may take to end after each.
var hangupSteps = []struct {
	signal   syscall.Signal
	patience time.Duration
}{{hangupSignal, hangupPatience}, {killSignal, killedPatience}}

// findProcess finds the process of a command, which the engine starts after its answer.
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

// hangUp ends a command whose caller is gone.
func (x *execution) hangUp(ctx context.Context, started <-chan struct{}) {
	select {
	case <-started:
	case <-x.ended:
	case <-time.After(killedPatience):
	}
	for _, step := range hangupSteps {
		if err := x.process().signalGroup(step.signal); err != nil {
			x.r.e.logger.Warn("a command in a container could not be ended", "container", x.r.name, "error", err)
		}
		select {
		case <-x.ended:
			return
		case <-ctx.Done():
		case <-time.After(step.patience):
		}
	}
	x.conn.Close() // its output ends
}

// passSignals sends the signals of a command's caller to it.
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
				x.r.e.logger.Warn("a command in a container could not be sent a signal", "container", x.r.name, "signal", name, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// noteRun notes whether the command has had a process.
func (x *execution) noteRun(pid int) {
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
