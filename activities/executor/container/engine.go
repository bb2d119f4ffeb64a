package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
)

const (
	// pingEvery is the interval between pings of the engine. pingAgain is the interval while a caller waits for the engine.
	pingEvery = 3 * time.Second
	pingAgain = 200 * time.Millisecond
	// pingPatience is how long a ping may take; a busy machine can be slow.
	pingPatience = 10 * time.Second
	// firstPing bounds how long a caller that needs an immediate answer waits for the first ping.
	firstPing = 300 * time.Millisecond
)

var errAsking = errors.New("the container engine has not answered yet")

// engine tracks whether the container engine answers. Calls under its guard end when the engine stops answering, so an engine
// that hangs does not block a caller for long. A call may still take as long as it needs while the engine answers pings.
type engine struct {
	docker *client.Client
	// pinged is closed after the first ping, which takes at most pingPatience.
	pinged chan struct{}
	hurry  chan struct{} // requests a ping now
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu sync.Mutex
	// well ends when the engine stops answering, with the reason as its cause. It is replaced when the engine answers again.
	well    context.Context
	fail    context.CancelCauseFunc
	changed chan struct{} // closed after each ping
	// networks are the names of the engine's networks at the last successful ping, sorted.
	networks []string
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
			err = silentEngine(e.docker)
		}
		var networks []network.Summary
		if err == nil {
			networks, _ = e.docker.NetworkList(pingCtx, network.ListOptions{}) // the next ping tries again
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		e.recordPing(err, networks)
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

func silentEngine(docker *client.Client) error {
	return fmt.Errorf("the container engine at %s does not answer", docker.DaemonHost())
}

// recordPing records the result of a ping, and the networks of the engine unless there are none.
func (e *engine) recordPing(err error, networks []network.Summary) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(networks) > 0 {
		e.networks = e.networks[:0:0]
		for _, n := range networks {
			e.networks = append(e.networks, n.Name)
		}
		slices.Sort(e.networks)
	}
	switch {
	case err != nil:
		if e.well.Err() != nil { // keep the latest reason
			e.well, e.fail = context.WithCancelCause(context.Background())
		}
		e.fail(err)
	case e.well.Err() != nil:
		e.well, e.fail = context.WithCancelCause(context.Background())
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

// health returns a context that lasts while the engine answers, and a channel that is closed after the next ping.
func (e *engine) health() (well context.Context, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.well, e.changed
}

// available returns nil if the engine answered the last ping.
func (e *engine) available() error {
	select {
	case <-e.pinged:
	case <-time.After(firstPing):
	}
	well, _ := e.health()
	return context.Cause(well)
}

// awaitFirstPing waits for the first ping, for at most pingPatience, and then returns the result of available. If ctx ends first, it
// returns the cause of ctx.
func (e *engine) awaitFirstPing(ctx context.Context) error {
	select {
	case <-e.pinged:
		return e.available()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// guard returns a context that ends with ctx or when the engine stops answering.
func (e *engine) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	well, _ := e.health()
	stop := context.AfterFunc(well, func() { cancel(context.Cause(well)) })
	return ctx, func() { stop(); cancel(nil) }
}

// await waits until the engine answers. If ctx ends first, it returns the cause of ctx.
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
			e.requestPing()
		}
	}
}

// requestPing requests a ping now, because the caller has reason to doubt the last result.
func (e *engine) requestPing() {
	select {
	case e.hurry <- struct{}{}:
	default:
	}
}

// awaitPing requests a ping after a call failed as if the engine were gone. It returns after that ping, or when ctx ends.
func (e *engine) awaitPing(ctx context.Context) {
	_, changed := e.health()
	e.requestPing()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// confirm pings the engine and reports whether it answers.
func (e *engine) confirm(ctx context.Context) bool {
	e.awaitPing(ctx)
	return e.available() == nil
}

// Networks returns the names of the engine's networks, sorted, as of its last answer.
func (e *Executor) Networks() []string {
	e.engine.mu.Lock()
	defer e.engine.mu.Unlock()
	return e.engine.networks
}

// IsInstalled reports whether this machine has an engine, whether or not it answers. It also returns true if the configured
// engine is on another machine.
func (e *Executor) IsInstalled() bool { return isInstalled(e.docker) }

func isInstalled(docker *client.Client) bool {
	socket, isLocal := strings.CutPrefix(docker.DaemonHost(), "unix://")
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
