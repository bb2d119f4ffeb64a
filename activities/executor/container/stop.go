package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
)

const (
	// signalPatience is how long the engine may take to deliver a signal before the process is signalled directly. A
	// lost lease leaves three seconds.
	signalPatience = time.Second
	// endPatience is how long an engine may take to report the end of a container that was killed.
	endPatience = 2 * time.Second
	// ownEndPatience is how long an engine that answers may take to report an end that only the engine can report: that of
	// a program that ended by itself, or that was killed and is not visible on this machine. It is also how long a killed
	// process may take to end.
	ownEndPatience = 30 * time.Second
)

// stop asks the container to end, and kills it when the grace period or the lease is over. It calls giveUp to end the
// calls about the container if the engine does not report its end.
func (r *running) stop(ctx context.Context, giveUp context.CancelCauseFunc) {
	paused, restart, ok := r.lifecycle.BeginStop()
	if !ok {
		return
	}
	if restart != nil {
		restart.Finish(r.attempt.Grace + endPatience)
	}
	if paused {
		r.unpause(ctx)
	}
	r.signal(ctx, r.stopSignal())
	gone := r.endChannel(ctx)
	r.calls.Go(func() { r.repeatStopSignal(ctx, gone) })
	signal := r.stopSignal()
	killed := r.attempt.AwaitKill(gone)
	if killed {
		signal = nameOf(syscall.SIGKILL)
		r.unpause(ctx)
		r.signal(ctx, signal)
	}
	if r.awaitReport(killed) {
		return
	}
	if !r.main.isKnown() {
		giveUp(fmt.Errorf("it may still be running: the engine does not answer, and %w", errNotHere))
		return
	}
	first := r.main.process()
	err := first.signal(syscall.SIGKILL)
	if first.awaitEnd(ownEndPatience) {
		giveUp(forced{numberOf(signal)})
		return
	}
	giveUp(errors.Join(errors.New("it could not be killed"), err))
}

// awaitReport waits until the engine has reported the end of the container, and reports whether it has. While the
// engine answers, it gets more time for an end that only the engine can report.
func (r *running) awaitReport(killed bool) bool {
	select {
	case <-r.ended:
		return true
	case <-time.After(endPatience):
	}
	if killed && r.main.isKnown() {
		return false
	}
	well, _ := r.e.engine.health()
	select {
	case <-r.ended:
		return true
	case <-well.Done():
	case <-time.After(ownEndPatience):
	}
	return false
}

// forced is the cause that ends the calls about a container whose process is known to have ended by a signal.
type forced struct{ by syscall.Signal }

func (forced) Error() string { return "the engine does not report its end" }

// endChannel returns a channel that is closed when the container or its process has ended.
func (r *running) endChannel(ctx context.Context) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		known := r.main.isKnown()
		for !known || r.main.process().alive() {
			select {
			case <-r.ended:
				return
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return gone
}

// stopSignal returns the signal that asks the container to end.
func (r *running) stopSignal() string {
	return cmp.Or(r.attempt.Signal, r.main.containerConfig().StopSignal, nameOf(syscall.SIGTERM))
}

// termAgain is how often a waiting program is sent SIGTERM, since SIGTERM has no effect while a container starts.
const termAgain = time.Second

// repeatStopSignal repeats the stop signal of a waiting program until the container has ended.
func (r *running) repeatStopSignal(ctx context.Context, gone <-chan struct{}) {
	for {
		select {
		case <-gone:
			return
		case <-time.After(termAgain):
			if r.main.isWaitProgram() {
				r.signal(ctx, r.stopSignal())
			}
		}
	}
}

// signal sends a signal through the engine, or directly to the process if the engine fails.
func (r *running) signal(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, signalPatience)
	defer cancel()
	err := r.e.docker.ContainerKill(ctx, r.id, name)
	if err == nil || cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) {
		return // Conflict: the container does not run
	}
	r.e.engine.requestPing()
	if !r.main.isKnown() {
		err = errors.Join(err, errNotHere)
	} else if direct := r.main.process().signal(numberOf(name)); direct == nil {
		return
	} else {
		err = errors.Join(err, direct)
	}
	r.e.logger.Warn("cannot signal a container", "container", r.name, "signal", name, "error", err)
}

// unpause resumes a suspended container, so that it receives its signals.
func (r *running) unpause(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, signalPatience)
	defer cancel()
	_ = r.e.docker.ContainerUnpause(ctx, r.id) // most containers are not suspended, which is an error
}
