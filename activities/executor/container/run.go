package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"switchyard/activities/executor"
)

// Run runs the attempt's container and returns when it has ended and is removed, but for
// one that failed and is to be kept. It waits for the image as long as ctx lasts. The
// processor time and the memory that it took are not in the Result.
//
// A container has one exit code for a program's own above 128 and for a signal, so that
// one of a signal is taken for it. What ends because the engine goes down is a fault of
// the node. An engine that goes away and comes back while the container runs, or hangs,
// is waited for; an attempt that must end meanwhile is ended through its process, where
// this process may do that.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	if a.Notify == nil {
		a.Notify = func(string) {}
	}
	r, err := e.start(ctx, a)
	switch {
	case err != nil && (ctx.Err() != nil || a.Lease.Lost()) && executor.AsStartError(err) == nil, errors.Is(err, errOver):
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	case err != nil:
		return executor.Result{}, err
	}
	defer r.close()
	spawned()
	return r.follow(ctx)
}

// errOver says that an attempt was over before it could start.
var errOver = errors.New("the attempt is over")

// over reports whether an attempt must not start any more.
func over(ctx context.Context, a executor.Attempt) bool { return ctx.Err() != nil || a.Lease.Lost() }

// start starts the container of an attempt. After an error nothing of it is left.
func (e *Executor) start(ctx context.Context, a executor.Attempt) (_ *running, err error) {
	if over(ctx, a) {
		return nil, errOver
	}
	plan, err := e.plan(a)
	if err != nil {
		return nil, err
	}
	spec := plan.Spec
	held, err := e.checkPolicy(spec)
	if err != nil {
		return nil, err
	}
	defer held.close()
	if err := e.engine.answered(ctx); err != nil {
		return nil, err
	}
	req := request{kind: e.kind, spec: spec, attempt: a, held: held, standing: e.opts.Mounts, isInit: plan.IsInit, atHome: plan.AtHome}
	if req.numa, err = numaOf(topology, a); err != nil {
		return nil, err
	}
	guarded, release := e.engine.guard(ctx)
	defer release()
	if spec.GetEnvironment() != "" {
		var unhold func()
		if req.image, unhold, err = e.ensureEnvironment(guarded, spec, a.Notify); err != nil {
			return nil, err
		}
		defer unhold()
	} else if req.image, err = e.ensureImage(guarded, spec, a.Notify); err != nil {
		return nil, err
	}
	if plan.Waits {
		if req.waitProgram, err = e.waitProgramFor(guarded, spec.GetImage()); err != nil {
			return nil, err
		}
		spec.Entrypoint = Words([]string{waitPath})
	}
	if req.cores, req.logDriver, err = e.askEngineInfo(guarded); err != nil {
		return nil, fmt.Errorf("ask the container engine: %w", err)
	}
	for range addressTries {
		var r *running
		if r, err = e.startAt(ctx, req); err == nil || !isAddressTaken(err) || spec.GetIp() != autoAddress {
			return r, err
		}
	}
	return nil, err
}

// addressTries is how many addresses of a network are tried that another container may take.
const addressTries = 5

// startAt starts a container with an address of its network.
func (e *Executor) startAt(ctx context.Context, req request) (_ *running, err error) {
	ip, release, err := e.reserveAddress(ctx, req.spec.GetNetwork(), req.spec.GetIp())
	if err != nil {
		return nil, err
	}
	req.ip = ip
	r := newRunning(ctx, e, req.attempt, e.kind.nameOf(req.attempt.Identity))
	r.image, r.release, r.keep, r.atHome = req.image, release, req.spec.GetKeep() != "", req.atHome
	r.holdsMounts = slices.ContainsFunc(req.held, func(dir *os.File) bool { return dir != nil })
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	for _, dir := range r.attempt.PrivateDirs() {
		if err := openPermissions(dir); err != nil {
			return nil, fmt.Errorf("open the workspace for the container: %w", err)
		}
	}
	// What was begun is seen through, so that it is known what there is to remove.
	ctx2, done := e.engine.guard(context.WithoutCancel(ctx))
	defer done()
	m, err := r.create(ctx2, req)
	if err != nil {
		return nil, err
	}
	if over(ctx, r.attempt) {
		return nil, errOver
	}
	if err := r.putWaitProgram(ctx2, req.waitProgram); err != nil {
		return nil, err
	}
	if err := r.checkOpenMounts(ctx2, req); err != nil {
		return nil, err
	}
	if err := e.checkCommand(ctx2, req, m, r.id); err != nil {
		return nil, err
	}
	if err := r.out.attach(ctx2); err != nil {
		return nil, fmt.Errorf("attach to container %s: %w", r.name, err)
	}
	if over(ctx, r.attempt) {
		return nil, errOver
	}
	if err := e.docker.ContainerStart(ctx2, r.id, container.StartOptions{}); err != nil {
		return nil, blame("start container "+r.name, causeOf(ctx2, err))
	}
	r.looked = make(chan struct{})
	r.enter()
	return r, nil
}

// causeOf is the error of a call, or why the engine is taken to be gone.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// running is the container of an attempt from its creation to its end.
type running struct {
	e       *Executor
	attempt executor.Attempt
	// id is the engine's; empty: it may not have been made.
	id, name, image string
	keep            bool
	// atHome is that of the Plan.
	atHome bool
	// holdsMounts reports whether a directory of openMount is mounted in it.
	holdsMounts bool
	out         *output
	release     func() // gives its address back

	// life is that of the calls about the container, which outlive the context of Run; giveUp ends it.
	life   context.Context
	giveUp context.CancelCauseFunc
	calls  sync.WaitGroup

	looked chan struct{} // closed when process is known, or cannot be; nil: it is not looked for
	// stopAsked is closed when the attempt is to end as asked.
	stopAsked chan struct{}

	// ended is closed when exit is known.
	ended chan struct{}
	exit  exit
	// lost is closed when the engine was lost while the container ran.
	lost     chan struct{}
	loseOnce sync.Once

	// steering is held while it is suspended or resumed.
	steering sync.Mutex

	mu sync.Mutex
	// process is the container's first, once it is known.
	process process
	// config is what the engine says of it, or nil.
	config *container.Config
	// over says that the container has ended, stopping that it is being stopped, asked that this is for Halt, and left that it is
	// left to a later worker.
	over, stopping, asked, left bool
	// paused says that it may stand still, capturing that it does while its files are copied.
	paused, capturing bool
	// restarting is the restart that is under way, or nil; restarts is how many have begun, and restartError that of the last.
	restarting   *restart
	restarts     int
	restartError error
}

// newRunning returns the container of an attempt that is to be made, or found.
func newRunning(ctx context.Context, e *Executor, a executor.Attempt, name string) *running {
	r := &running{
		e: e, attempt: a, name: name, ended: make(chan struct{}), lost: make(chan struct{}), stopAsked: make(chan struct{}),
	}
	r.life, r.giveUp = context.WithCancelCause(context.WithoutCancel(ctx))
	r.out = newOutput(r)
	return r
}

// exit is how a container has ended.
type exit struct {
	code      int
	oomKilled bool
	// err says that it did not end by itself, or that this is not known: a fault of the node.
	err error
}

// enter makes a container that has started known.
func (r *running) enter() {
	if r.e.kind.Lasts {
		r.attempt.Lease = nil
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	r.e.running[r.attempt.ID] = r
}

// close removes what is left of the attempt.
func (r *running) close() {
	r.e.mu.Lock()
	if r.e.running[r.attempt.ID] == r {
		delete(r.e.running, r.attempt.ID)
	}
	r.e.mu.Unlock()
	r.giveUp(errClosed)
	r.out.close()
	r.e.endings.forget(r.id)
	if r.release != nil {
		defer r.release()
	}
	if r.isLeft() {
		return
	}
	if r.keep && r.failed() {
		r.keepIt()
	} else {
		r.remove()
	}
	for _, dir := range r.attempt.PrivateDirs() {
		if err := restorePermissions(dir); err != nil {
			r.e.logger.Warn("a workspace could not be closed to others again", "container", r.name, "error", err)
		}
	}
}

// errClosed ends the calls about a container that has ended.
var errClosed = errors.New("the attempt has ended")

// failed reports whether the program has ended by itself, with another exit code than 0.
func (r *running) failed() bool {
	select {
	case <-r.ended:
	default:
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.stopping && r.exit.err == nil && r.exit.code != 0
}

// follow passes on what a container prints that has started, ends it when ctx ends, and
// says how it has ended.
func (r *running) follow(ctx context.Context) (executor.Result, error) {
	defer r.calls.Wait()
	defer r.giveUp(errClosed)
	if r.looked != nil {
		r.calls.Go(func() { defer close(r.looked); r.lookForProcess(r.life) })
	}
	r.calls.Go(func() { r.awaitEnd(r.life) })
	printed := make(chan struct{})
	r.calls.Go(func() { defer close(printed); r.out.copy(r.life) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.calls.Go(func() {
		select {
		case <-r.stopAsked:
			cancel(errStopAsked)
		case <-r.life.Done():
		}
	})

	var stops sync.WaitGroup
	stops.Add(1)
	unstop := context.AfterFunc(ctx, func() {
		defer stops.Done()
		if r.e.kind.Lasts && errors.Is(context.Cause(ctx), executor.ErrLetGo) {
			r.leave()
			return
		}
		r.stop(r.life, r.giveUp)
	})
	<-r.ended
	if unstop() {
		stops.Done()
	}
	stops.Wait()
	r.mu.Lock()
	stopped, asked, left := r.stopping, r.asked, r.left
	r.mu.Unlock()
	if stopped {
		select {
		case <-printed:
		case <-time.After(printPatience):
			r.attempt.Notify("the last output of the container could not be read")
			r.giveUp(errors.New("its output did not end"))
			<-printed
		}
	} else {
		<-printed
	}
	if left {
		return executor.Result{ExitCode: -1, Image: digest(r.image), Container: shortID(r.id), Stopped: true}, r.out.err
	}
	if r.exit.err != nil && !stopped {
		return executor.Result{}, errors.Join(fmt.Errorf("container %s: %w", r.name, r.exit.err), r.out.err)
	}
	result := executor.Result{
		ExitCode: r.exit.code, Signal: signalOf(r.exit.code), Image: digest(r.image), Container: shortID(r.id),
		// With the lease lost, whoever enforces it may have ended it.
		Stopped: stopped && !asked || r.attempt.Lease.Lost(), StoppedAsAsked: asked,
	}
	result.OOMKilled = r.exit.oomKilled && r.exit.code != 0 && !stopped
	if stopped && r.exit.err != nil {
		return result, fmt.Errorf("container %s: %w", r.name, r.exit.err)
	}
	return result, r.out.err
}

// printPatience is how long the output of a container that was stopped may take.
const printPatience = 10 * time.Second

// shortID is the start of a container's id that engines list and take.
func shortID(id string) string { return id[:min(len(id), 12)] }

// digest is the content part of a content address.
func digest(image string) string { return image[strings.LastIndexByte(image, '@')+1:] }

// lookForProcess finds the container's process on this machine.
func (r *running) lookForProcess(ctx context.Context) {
	ctx, done := r.e.engine.guard(ctx)
	defer done()
	if c, err := r.e.docker.ContainerInspect(ctx, r.id); err == nil && c.State != nil {
		r.look(c)
	}
}

// look notes the process of a container that runs, and how it is asked to end.
func (r *running) look(c container.InspectResponse) {
	first := findProcess(c.State.Pid, r.id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process, r.config = first, c.Config
}

// containerConfig returns what the engine says of the container; it is empty before that is known.
func (r *running) containerConfig() *container.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.config == nil {
		return &container.Config{}
	}
	return r.config
}

// waits reports whether the program of the container is the one that waits.
func (r *running) waits() bool { return firstWord(r.containerConfig().Entrypoint) == waitPath }

// firstProcess returns the first process of the container; the zero process is not known.
func (r *running) firstProcess() process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}
