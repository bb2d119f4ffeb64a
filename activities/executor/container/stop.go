package container

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
)

const (
	// signalPatience is how long the engine may take to pass on a signal; then the
	// process is signalled directly. A lease has three seconds left when it is over.
	signalPatience = time.Second
	// endPatience is how long an engine may take to report an end that was forced.
	endPatience = 2 * time.Second
	// ownEndPatience is how long an engine that is well may take to report the end of a
	// program that has ended by itself, whose exit code only the engine knows.
	ownEndPatience = 30 * time.Second
)

// stop asks the container to end, and ends it by force when the grace period or the lease
// is over. giveUp ends the calls about it when the engine does not report its end.
func (r *running) stop(ctx context.Context, giveUp context.CancelCauseFunc) {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	r.stopping = true
	paused, restart := r.paused, r.restarting
	r.mu.Unlock()
	if restart != nil {
		restart.finish(r.attempt.Grace + endPatience)
	}
	if paused {
		r.unpause(ctx)
	}
	r.askToEnd(ctx)
	gone := r.gone(ctx)
	if r.waits() {
		r.calls.Go(func() { r.askAgain(ctx, gone) })
	}
	signal := syscall.SIGTERM
	killed := r.attempt.AwaitKill(gone)
	if killed {
		signal = syscall.SIGKILL
		r.unpause(ctx)
		r.signal(ctx, signal)
	}
	if r.awaitReport(killed) {
		return
	}
	if !r.known() {
		giveUp(fmt.Errorf("it may run on: the engine does not answer, and %w", errNotHere))
		return
	}
	first := r.firstProcess()
	err := first.signal(syscall.SIGKILL)
	if first.awaitEnd(endPatience) {
		giveUp(forced{signal})
		return
	}
	giveUp(errors.Join(errors.New("it could not be ended"), err))
}

// awaitReport waits until the engine has reported the end, and reports whether it has. The
// end of a program that was not killed is waited for longer while the engine is well.
func (r *running) awaitReport(killed bool) bool {
	select {
	case <-r.ended:
		return true
	case <-time.After(endPatience):
	}
	if killed {
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

// forced ends the calls about a container whose process is known to have ended by a signal.
type forced struct{ by syscall.Signal }

func (forced) Error() string { return "the engine does not tell of its end" }

// gone is closed when the container, or its process, has ended.
func (r *running) gone(ctx context.Context) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		known := r.known()
		for !known || r.firstProcess().alive() {
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

// known reports whether the container's process is known on this machine.
func (r *running) known() bool {
	if r.looked != nil {
		select {
		case <-r.looked:
		case <-time.After(signalPatience):
			return false
		}
	}
	return r.firstProcess().pid > 0
}

// askToEnd sends the signal that asks the container to end.
func (r *running) askToEnd(ctx context.Context) {
	if name := r.containerConfig().StopSignal; name != "" && name != nameOf(syscall.SIGTERM) {
		short, cancel := context.WithTimeout(ctx, signalPatience)
		err := r.e.docker.ContainerKill(short, r.id, name)
		cancel()
		if err == nil {
			return
		}
	}
	r.signal(ctx, syscall.SIGTERM)
}

// termAgain is how often a program that waits is sent SIGTERM. One that comes while a container starts has no effect.
const termAgain = time.Second

// askAgain sends SIGTERM again and again until the container has ended.
func (r *running) askAgain(ctx context.Context, gone <-chan struct{}) {
	for {
		select {
		case <-gone:
			return
		case <-time.After(termAgain):
			r.askToEnd(ctx)
		}
	}
}

// signal sends a signal by the engine, or to the process when the engine does not do it.
func (r *running) signal(ctx context.Context, s syscall.Signal) {
	ctx, cancel := context.WithTimeout(ctx, signalPatience)
	defer cancel()
	err := r.e.docker.ContainerKill(ctx, r.id, nameOf(s))
	if err == nil || cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) {
		return // Conflict: it does not run
	}
	r.e.engine.ask()
	if !r.known() {
		err = errors.Join(err, errNotHere)
	} else if direct := r.firstProcess().signal(s); direct == nil {
		return
	} else {
		err = errors.Join(err, direct)
	}
	r.e.logger.Warn("a container could not be sent a signal", "container", r.name, "signal", nameOf(s), "error", err)
}

// unpause lets a suspended container receive its signals.
func (r *running) unpause(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, signalPatience)
	defer cancel()
	_ = r.e.docker.ContainerUnpause(ctx, r.id) // most are not suspended
}
