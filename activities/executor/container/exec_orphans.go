package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// sessionVariable is the environment variable that marks the commands of Exec with the id of their attempt. The engine keeps a
// command running when its client dies, and does not distinguish such a command from one that a user started.
const sessionVariable = "SWITCHYARD_SESSION"

// orphan is a command that an earlier worker started through Exec.
type orphan struct {
	exec string
	process
}

// execOrphans ends the commands that an earlier worker started in the container of an attempt through Exec.
type execOrphans struct {
	docker              *client.Client
	engine              *engine
	logger              *slog.Logger
	container, name, id string // the engine's id of the container, its name, and the id of the attempt
}

// endAll ends the commands that an earlier worker started in the container, since their callers have left. It hangs up and
// then kills, as hangUp does. Processes that have left the process group of their command remain, as after the hang-up of a
// terminal. execs are the commands that the engine listed before this worker could start any.
func (x *execOrphans) endAll(ctx context.Context, execs []string) {
	var ends sync.WaitGroup
	defer ends.Wait()
	for _, exec := range execs {
		o, err := x.find(ctx, exec)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			x.logger.Warn("cannot inspect a command in a container; if an earlier worker started it for a session, it keeps running",
				"container", x.name, "error", err)
		case o != nil:
			ends.Go(func() { x.end(ctx, *o) })
		}
	}
}

// find looks up a command in the engine. It returns nil unless an earlier worker started the command for a session.
func (x *execOrphans) find(ctx context.Context, exec string) (*orphan, error) {
	seen, err := x.inspect(ctx, exec)
	switch {
	case cerrdefs.IsNotFound(err), err == nil && !seen.Running:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("inspect command %s: %w", shortID(exec), err)
	}
	p := findProcess(seen.Pid, x.container)
	if p.pid == 0 {
		return nil, nil // the command has ended, or runs on another machine
	}
	environ, err := p.environ()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return nil, nil
	case err != nil:
		return nil, err
	case !hasVariable(environ, sessionVariable, x.id):
		return nil, nil
	}
	return &orphan{exec, p}, nil
}

// inspect inspects a command. If the engine is away, it waits and tries again.
func (x *execOrphans) inspect(ctx context.Context, exec string) (container.ExecInspect, error) {
	for {
		guarded, done := x.engine.guard(ctx)
		seen, err := x.docker.ContainerExecInspect(guarded, exec)
		isAway := guarded.Err() != nil
		err = causeOf(guarded, err)
		done()
		if err == nil || !isAway || x.engine.await(ctx) != nil {
			return seen, err
		}
	}
}

// end sends SIGHUP to a command, and kills it if that does not end it.
func (x *execOrphans) end(ctx context.Context, o orphan) {
	for _, step := range hangupSteps {
		if err := o.signalGroup(step.signal); err != nil {
			x.logger.Warn("cannot end a command of an earlier worker's session", "container", x.name, "exec", shortID(o.exec), "error", err)
			return
		}
		for until := time.Now().Add(step.patience); o.alive(); {
			if time.Now().After(until) {
				break
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(orphanPoll):
			}
		}
	}
}

// hasVariable reports whether an environment in the form of /proc/PID/environ sets a variable to a value.
func hasVariable(environ []byte, name, value string) bool {
	want := []byte(name + "=" + value)
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}

// orphanPoll is how often to check whether an orphan has ended.
const orphanPoll = 10 * time.Millisecond
