package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/client"
)

const (
	// pingEvery is how often an engine is asked whether it is there, and pingAgain
	// how often one that a caller waits for.
	pingEvery = 3 * time.Second
	pingAgain = 200 * time.Millisecond
	// pingPatience is how long an answer may take; a machine that is busy can be slow.
	pingPatience = 10 * time.Second
	// firstPing bounds how long the first answer is waited for by who wants to know at once.
	firstPing = 300 * time.Millisecond
)

var errAsking = errors.New("the container engine has not answered yet")

// engine knows whether the container engine answers. Calls under its guard end when
// it does not, so that an engine that hangs holds up no caller for long; how long a call
// takes that an engine works on does not matter.
type engine struct {
	docker *client.Client
	// pinged is closed after the first ping, which takes pingPatience at the most.
	pinged chan struct{}
	hurry  chan struct{} // asks for a ping now
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu sync.Mutex
	// well ends when the engine does not answer, with why; it is replaced when it does again.
	well    context.Context
	fail    context.CancelCauseFunc
	changed chan struct{} // closed after each ping
}

func watchEngine(docker *client.Client) *engine {
	ctx, cancel := context.WithCancel(context.Background())
	e := &engine{
		docker: docker, pinged: make(chan struct{}), hurry: make(chan struct{}, 1), cancel: cancel,
		changed: make(chan struct{}),
	}
	e.well, e.fail = context.WithCancelCause(context.Background())
	e.fail(errAsking)
	e.tasks.Go(func() { e.watch(ctx) })
	return e
}

func (e *engine) close() {
	e.cancel()
	e.tasks.Wait()
}

func (e *engine) watch(ctx context.Context) {
	for first := true; ; first = false {
		pingCtx, cancel := context.WithTimeout(ctx, pingPatience)
		_, err := e.docker.Ping(pingCtx)
		if err != nil && ctx.Err() == nil && pingCtx.Err() != nil {
			err = fmt.Errorf("the container engine at %s does not answer", e.docker.DaemonHost())
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		e.note(err)
		if first {
			close(e.pinged)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.hurry:
		case <-time.After(pingEvery):
		}
	}
}

// note keeps what a ping has returned.
func (e *engine) note(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		if e.well.Err() != nil { // the newest reason counts
			e.well, e.fail = context.WithCancelCause(context.Background())
		}
		e.fail(err)
	case e.well.Err() != nil:
		e.well, e.fail = context.WithCancelCause(context.Background())
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

// health returns the context of the engine's being well, and what is closed after the next ping.
func (e *engine) health() (well context.Context, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.well, e.changed
}

// available returns nil when the engine answered when it was asked last.
func (e *engine) available() error {
	select {
	case <-e.pinged:
	case <-time.After(firstPing):
	}
	well, _ := e.health()
	return context.Cause(well)
}

// answered waits for the first answer, for pingPatience at the most, and then returns what
// available returns. It returns the cause for which ctx has ended if that comes first.
func (e *engine) answered(ctx context.Context) error {
	select {
	case <-e.pinged:
		return e.available()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// guard returns a context that ends with ctx, and when the engine does not answer any more.
func (e *engine) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	well, _ := e.health()
	stop := context.AfterFunc(well, func() { cancel(context.Cause(well)) })
	return ctx, func() { stop(); cancel(nil) }
}

// await returns when the engine answers, or with the cause for which ctx has ended.
func (e *engine) await(ctx context.Context) error {
	for {
		well, changed := e.health()
		if well.Err() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-time.After(pingAgain):
			e.ask()
		}
	}
}

// ask has the engine pinged now: a caller has reason to doubt what is known.
func (e *engine) ask() {
	select {
	case e.hurry <- struct{}{}:
	default:
	}
}

// doubt says that a call has failed as if the engine were gone, and has it pinged. It
// returns when that is known better, or ctx ends.
func (e *engine) doubt(ctx context.Context) {
	_, changed := e.health()
	e.ask()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// confirm has the engine pinged and reports whether it answers.
func (e *engine) confirm(ctx context.Context) bool {
	e.doubt(ctx)
	return e.available() == nil
}

// IsInstalled reports whether there is an engine on this machine, or one is named that is elsewhere, whether it answers or not.
func (e *Executor) IsInstalled() bool {
	socket, isLocal := strings.CutPrefix(e.docker.DaemonHost(), "unix://")
	if !isLocal {
		return true
	}
	if _, err := os.Stat(socket); err == nil {
		return true
	}
	for _, program := range []string{"dockerd", "podman"} {
		if _, err := exec.LookPath(program); err == nil {
			return true
		}
	}
	return false
}
