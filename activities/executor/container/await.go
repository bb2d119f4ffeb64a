package container

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

const (
	// engineAway is how long the engine may be away after a container's process has ended. Only the engine knows the exit status.
	engineAway = 2 * time.Minute
	// oomPatience is how long the engine may take to report that a container ran out of memory, which it reports separately from
	// the exit. Only a container with a memory limit and the exit code of SIGKILL waits for the report.
	oomPatience = 10 * time.Second
)

var errVanished = errors.New("the container was removed")

// await waits for the end of the container, even if the engine goes away and comes back meanwhile.
func (r *running) await(ctx context.Context) exit {
	for {
		starts := r.e.endings.get(r.id).starts
		status, err := r.wait(ctx)
		if err == nil && !r.loss.isMarked() {
			if !r.lifecycle.State().IsStopped() && !r.e.endings.awaitExplanation(ctx, r.id, starts) {
				r.loss.mark()
			}
			if r.isStartedAgain(ctx, starts) {
				continue
			}
			switch {
			case r.wasKilled():
				return exit{code: status, err: endedByEngine(status)}
			case status == 0 && !r.loss.isMarked():
				return exit{}
			}
		}
		if err == nil {
			var c container.InspectResponse
			if c, err = r.inspect(ctx); err == nil && c.State != nil && !alive(c.State) {
				return r.exitOf(ctx, c.State)
			}
		}
		switch {
		case ctx.Err() != nil:
			return abandonedExit(context.Cause(ctx))
		case cerrdefs.IsNotFound(err):
			return exit{err: errVanished}
		case err != nil:
			r.loss.mark()
		}
		state, err := r.state(ctx)
		switch {
		case err != nil:
			return abandonedExit(err)
		case !alive(state):
			return r.exitOf(ctx, state)
		}
	}
}

// awaitEnd waits for the end of the container and records it. It ignores the end with which a restart begins.
func (r *running) awaitEnd(ctx context.Context) {
	defer close(r.ended)
	for {
		begun := r.lifecycle.AwaitRestart(ctx)
		end := r.await(ctx)
		restartError, ended := r.lifecycle.End(begun, ctx.Err() != nil)
		if !ended {
			continue
		}
		if restartError != nil {
			end.err = fmt.Errorf("it could not be restarted: %w", restartError)
		}
		r.exit = end
		return
	}
}

// handRestart is how long the engine may take to start a container again after a user restarted it with the engine's own
// commands.
const handRestart = 10 * time.Second

// isStartedAgain reports whether the engine has started the container again since starts was read.
func (r *running) isStartedAgain(ctx context.Context, starts int) bool {
	has := func(e ending) bool { return e.starts != starts }
	if !has(r.e.endings.get(r.id)) && !(r.e.kind.Lasts && r.wasKilled() && r.e.endings.await(ctx, r.id, handRestart, has)) {
		return false
	}
	if r.e.endings.get(r.id).starts > 1 {
		r.lookForProcess(ctx)
	}
	return true
}

// abandonedExit returns the exit of a container whose end is no longer awaited.
func abandonedExit(why error) exit {
	if f, ok := errors.AsType[forced](why); ok {
		return exit{code: 128 + int(f.by)}
	}
	return exit{code: -1, err: why}
}

// wait waits for the end of the container with a single call of the engine.
func (r *running) wait(ctx context.Context) (int, error) {
	statuses, errs := r.e.docker.ContainerWait(ctx, r.id, container.WaitConditionNotRunning)
	select {
	case status := <-statuses:
		if status.Error != nil {
			return 0, errors.New(status.Error.Message)
		}
		return int(status.StatusCode), nil
	case err := <-errs:
		return 0, err
	}
}

// state returns the state of the container as soon as the engine answers.
func (r *running) state(ctx context.Context) (*container.State, error) {
	r.e.engine.awaitPing(ctx)
	for since := time.Now(); ; {
		short, cancel := context.WithTimeout(ctx, pingPatience)
		err := r.e.engine.await(short)
		cancel()
		if err == nil {
			var c container.InspectResponse
			c, err = r.inspect(ctx)
			switch {
			case err == nil && c.State != nil:
				return c.State, nil
			case cerrdefs.IsNotFound(err):
				return nil, errVanished
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if time.Since(since) > engineAway && !r.main.isAlive() {
			return nil, fmt.Errorf("it has ended, but the engine does not report its exit code: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pingAgain):
		}
	}
}

func (r *running) inspect(ctx context.Context) (container.InspectResponse, error) {
	ctx, done := r.e.engine.guard(ctx)
	defer done()
	c, err := r.e.docker.ContainerInspect(ctx, r.id)
	return c, causeOf(ctx, err)
}

func alive(s *container.State) bool { return s.Running || s.Paused || s.Restarting }

// exitOf returns the exit of a container that no longer runs.
func (r *running) exitOf(ctx context.Context, s *container.State) exit {
	out := exit{code: s.ExitCode, oomKilled: s.OOMKilled}
	switch {
	case r.lifecycle.State().IsStopped() || s.OOMKilled:
	case r.wasKilled(), r.loss.isMarked() && r.isEngineExitCode(s.ExitCode):
		out.err = endedByEngine(s.ExitCode)
	case s.ExitCode == 128+int(syscall.SIGKILL) && r.attempt.Limits.Memory > 0:
		out.oomKilled = r.e.endings.await(ctx, r.id, oomPatience, func(e ending) bool { return e.outOfMemory })
	}
	return out
}

// wasKilled reports whether the engine ended the container although the attempt did not request it. An engine does that when it
// shuts down or when a user stops the container with the engine's own commands. How the program responds to the signal does not
// matter then.
func (r *running) wasKilled() bool {
	return !r.lifecycle.State().IsStopped() && !r.attempt.Lease.Lost() && r.e.endings.get(r.id).killed
}

// isEngineExitCode reports whether an exit code may result from an engine that shuts down, or that restarts and cleans up what it finds.
func (r *running) isEngineExitCode(code int) bool {
	switch code {
	case 128 + int(syscall.SIGKILL), 128 + int(syscall.SIGTERM), 128 + int(numberOf(r.stopSignal())), 255:
		return true
	}
	return false
}

func endedByEngine(code int) error {
	return fmt.Errorf("the container engine stopped it (exit code %d), because the engine shut down or another client stopped the container", code)
}
