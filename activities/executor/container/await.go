package container

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

const (
	// engineAway is how long an engine may be away after the process of a container has
	// ended, of which only the engine knows how.
	engineAway = 2 * time.Minute
	// oomPatience is how long the engine may take to tell that a container had too
	// little memory: that comes by another way than its end.
	oomPatience = 2 * time.Second
	// lastWord is how long after its connection has ended an engine's word of the end of a
	// container may be on its way.
	lastWord = time.Second
)

var errVanished = errors.New("somebody has removed it")

// await waits for the end of the container, also while the engine is away and comes back.
func (r *running) await(ctx context.Context) exit {
	for {
		status, connection, err := r.wait(ctx)
		if err == nil && !r.wasLost() {
			if r.wentDown(ctx, connection) {
				return exit{code: status, err: endedWithEngine(status)}
			}
			if status == 0 {
				return exit{}
			}
		}
		if err == nil {
			var c container.InspectResponse
			if c, err = r.inspect(ctx); err == nil && c.State != nil && !alive(c.State) {
				return r.judge(ctx, c.State)
			}
		}
		switch {
		case ctx.Err() != nil:
			return givenUp(context.Cause(ctx))
		case cerrdefs.IsNotFound(err):
			return exit{err: errVanished}
		case err != nil:
			r.lose()
		}
		state, err := r.state(ctx)
		switch {
		case err != nil:
			return givenUp(err)
		case !alive(state):
			return r.judge(ctx, state)
		}
	}
}

// givenUp is the end of a container that is not waited for any more.
func givenUp(why error) exit {
	if f, ok := errors.AsType[forced](why); ok {
		return exit{code: 128 + int(f.by)}
	}
	return exit{code: -1, err: why}
}

// wait waits for the end of the container by one call. The connection is that of the
// engine's process that tells of the end; nil: it is not known.
func (r *running) wait(ctx context.Context) (status int, connection context.Context, err error) {
	statuses, errs := r.e.docker.ContainerWait(ctx, r.id, container.WaitConditionNotRunning)
	var cut, late <-chan struct{}
	if connection = r.e.engine.connection(); connection != nil {
		cut = connection.Done()
	}
	for {
		select {
		case status := <-statuses:
			if status.Error != nil {
				return 0, nil, errors.New(status.Error.Message)
			}
			return int(status.StatusCode), connection, nil
		case err := <-errs:
			return 0, nil, err
		case <-cut:
			// When the process has not ended, this call goes on.
			over, cancel := context.WithTimeout(ctx, lastWord)
			defer cancel()
			cut, late = nil, over.Done()
		case <-late:
			connection, late = nil, nil
		}
	}
}

// state looks at the container as soon as the engine answers.
func (r *running) state(ctx context.Context) (*container.State, error) {
	r.e.engine.doubt(ctx)
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
		if time.Since(since) > engineAway && !r.alive() {
			return nil, fmt.Errorf("it has ended, and its engine does not tell how: %w", err)
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
	return c, told(ctx, err)
}

func alive(s *container.State) bool { return s.Running || s.Paused || s.Restarting }

// alive tells whether the container's process is known to be there.
func (r *running) alive() bool {
	if r.looked != nil {
		select {
		case <-r.looked:
		default:
			return false
		}
	}
	return r.process.alive()
}

// lose notes that the engine was lost while the container ran.
func (r *running) lose() {
	r.loseOnce.Do(func() {
		r.lostAt = time.Now()
		close(r.lost)
	})
}

func (r *running) wasLost() bool {
	select {
	case <-r.lost:
		return true
	default:
		return false
	}
}

// judge says how a container has ended that does not run any more.
func (r *running) judge(ctx context.Context, s *container.State) exit {
	r.mu.Lock()
	asked := r.stopping
	r.mu.Unlock()
	out := exit{code: s.ExitCode, oomKilled: s.OOMKilled}
	switch {
	case asked || s.OOMKilled:
	case r.wasLost() && r.lostWithEngine(s):
		out.err = endedWithEngine(s.ExitCode)
	case s.ExitCode == 128+int(syscall.SIGKILL) && r.attempt.Limits.Memory > 0:
		out.oomKilled = r.outOfMemory(ctx)
	}
	return out
}

// wentDown tells whether the engine's process does not go on after it has told of the end
// of a container that nobody has asked to end. An engine that goes down stops taking calls
// first, then ends its containers, and tells of that whoever has been waiting; what a
// program makes of its signal does not count then. Where somebody else holds its socket
// the next engine answers, after a while.
func (r *running) wentDown(ctx, connection context.Context) bool {
	r.mu.Lock()
	asked := r.stopping
	r.mu.Unlock()
	if asked {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	return r.e.engine.takesCalls(ctx) != nil || connection != nil && connection.Err() != nil
}

// ofEngine tells whether an exit code is that of the signals of an engine that stops, or
// of one that comes back and clears away what it finds.
func ofEngine(code int) bool {
	switch code {
	case 128 + int(syscall.SIGKILL), 128 + int(syscall.SIGTERM), 255:
		return true
	}
	return false
}

func endedWithEngine(code int) error {
	return fmt.Errorf("it was ended when its engine went down (exit code %d)", code)
}

// lostWithEngine tells whether a container whose engine was away has been ended by that:
// by its signals, or while it was going down, when only its stream was still open.
func (r *running) lostWithEngine(s *container.State) bool {
	if ofEngine(s.ExitCode) {
		return true
	}
	finished, err := time.Parse(time.RFC3339Nano, s.FinishedAt)
	return err == nil && finished.After(r.lostAt) && finished.Before(r.out.closedAt())
}

// outOfMemory tells whether the engine has said that a container that was killed had too
// little memory.
func (r *running) outOfMemory(ctx context.Context) bool {
	until := time.Now().Add(oomPatience)
	ctx, cancel := context.WithDeadline(ctx, until.Add(oomPatience))
	defer cancel()
	messages, errs := r.e.docker.Events(ctx, events.ListOptions{
		Since: time.Now().Add(-time.Hour).Format(time.RFC3339Nano), Until: until.Format(time.RFC3339Nano),
		Filters: filters.NewArgs(filters.Arg("container", r.id), filters.Arg("event", string(events.ActionOOM))),
	})
	select {
	case <-messages:
		return true
	case <-errs:
		return false
	}
}
