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
	"switchyard/activities/executor/lifecycle"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/interpreter"
)

// Run runs the attempt's container. It returns when the container has ended and has been removed, except that a failed container
// may be kept. It waits for the image as long as ctx lasts. The Result lacks processor time and memory.
//
// A container's exit code does not distinguish a program's own code above 128 from a signal, so Run reports a signal for both. A
// container that ends because the engine shuts down is a fault of the node. If the engine hangs or goes away while the container
// runs, Run waits for it. An attempt that must end meanwhile is ended through its process, if this process may signal it.
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
	a.Locate(r.workload())
	spawned()
	return r.follow(ctx)
}

// errOver reports that an attempt was over before it could start.
var errOver = errors.New("the attempt was stopped before it started")

// mustNotStart reports whether an attempt must no longer start.
func mustNotStart(ctx context.Context, a executor.Attempt) bool {
	return ctx.Err() != nil || a.Lease.Lost()
}

// start starts the container of an attempt. After an error it leaves nothing of the container.
func (e *Executor) start(ctx context.Context, a executor.Attempt) (_ *running, err error) {
	if mustNotStart(ctx, a) {
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
	if err := e.engine.awaitFirstPing(ctx); err != nil {
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
		if req.image, unhold, err = e.images.ensureEnvironment(guarded, spec, a.Notify); err != nil {
			return nil, err
		}
		defer unhold()
	} else if req.image, err = e.images.ensureImage(guarded, spec, a.Notify); err != nil {
		return nil, err
	}
	if plan.Waits {
		if req.waitProgram, err = e.waitProgramFor(guarded, spec.GetImage()); err != nil {
			return nil, err
		}
		spec.Entrypoint = Words([]string{waitPath})
	}
	if req.cores, req.logDriver, err = e.askEngineInfo(guarded); err != nil {
		return nil, fmt.Errorf("query the container engine: %w", err)
	}
	for range addressTries {
		var r *running
		if r, err = e.startAt(ctx, req); err == nil || !isAddressTaken(err) || spec.GetIp() != autoAddress {
			return r, err
		}
	}
	return nil, err
}

// addressTries is how many addresses of a network start tries if other containers take them first.
const addressTries = 5

// startAt starts a container with an address reserved in its network.
func (e *Executor) startAt(ctx context.Context, req request) (_ *running, err error) {
	ip, release, err := e.addresses.reserveAddress(ctx, req.spec.GetNetwork(), req.spec.GetIp())
	if err != nil {
		return nil, err
	}
	req.ip = ip
	r := newRunning(ctx, e, req.attempt, e.kind.nameOf(req.attempt.Identity))
	r.image, r.imageName, r.release, r.keep, r.atHome = req.image, req.spec.GetImage(), release, req.spec.GetKeep() != "", req.atHome
	r.holdsMounts = slices.ContainsFunc(req.held, func(dir *os.File) bool { return dir != nil })
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err := writeScript(req); err != nil {
		return nil, err
	}
	for _, dir := range r.attempt.Dirs.Private() {
		if err := openPermissions(dir); err != nil {
			return nil, fmt.Errorf("make the workspace accessible to the container: %w", err)
		}
	}
	if err := handOverFiles(r.attempt.Dirs.Files, req.spec.GetUser()); err != nil {
		return nil, fmt.Errorf("hand over the files of the task: %w", err)
	}
	// Calls that have begun are completed even if ctx ends, so that it is known what there is to remove.
	ctx2, done := e.engine.guard(context.WithoutCancel(ctx))
	defer done()
	m, err := r.create(ctx2, req)
	if err != nil {
		return nil, err
	}
	r.isLarge = m.argumentBytes() > interpreter.MaxArgument
	if mustNotStart(ctx, r.attempt) {
		return nil, errOver
	}
	if err := r.putWaitProgram(ctx2, req.waitProgram); err != nil {
		return nil, err
	}
	if err := r.checkOpenMounts(ctx2, req); err != nil {
		return nil, err
	}
	if err := e.commandChecks.checkCommand(ctx2, req, m, r.id); err != nil {
		return nil, err
	}
	if err := r.out.attach(ctx2); err != nil {
		return nil, fmt.Errorf("attach to container %s: %w", r.name, err)
	}
	if mustNotStart(ctx, r.attempt) {
		return nil, errOver
	}
	if err := e.docker.ContainerStart(ctx2, r.id, container.StartOptions{}); err != nil {
		return nil, classifyFault("start container "+r.name, causeOf(ctx2, err))
	}
	r.main.looked = make(chan struct{})
	r.register()
	return r, nil
}

// causeOf returns the error of a call, or the cause of ctx if that has ended, such as an engine that stopped answering.
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
	// id is the engine's id, or "" if the container may not exist.
	id, name, image string
	// imageName is the image as the task names it, or "" if an environment supplies it.
	imageName string
	keep      bool
	// atHome has the meaning of Plan.AtHome.
	atHome bool
	// isLarge reports whether the arguments and the variables of the program are so large that it may not start.
	isLarge bool
	// holdsMounts reports whether the container has a mount from openMount.
	holdsMounts bool
	out         *output
	release     func() // releases its address

	// life is the context of calls about the container, which outlive the context of Run. giveUp ends it.
	life   context.Context
	giveUp context.CancelCauseFunc
	calls  sync.WaitGroup

	main      mainProcess
	lifecycle lifecycle.Lifecycle
	loss      engineLoss
	// steering is held while the container is suspended, resumed or restarted.
	steering sync.Mutex

	// ended is closed when exit is known.
	ended chan struct{}
	exit  exit
}

// newRunning returns the state of an attempt whose container is yet to be created or found.
func newRunning(ctx context.Context, e *Executor, a executor.Attempt, name string) *running {
	r := &running{
		e: e, attempt: a, name: name, ended: make(chan struct{}),
		loss: engineLoss{lost: make(chan struct{})},
	}
	r.life, r.giveUp = context.WithCancelCause(context.WithoutCancel(ctx))
	r.out = newOutput(r)
	return r
}

// exit describes how a container ended.
type exit struct {
	code      int
	oomKilled bool
	// err reports that the container did not end by itself or that its end is unknown, which is a fault of the node.
	err error
}

// register registers a container that has started.
func (r *running) register() {
	if r.e.kind.Lasts {
		r.attempt.Lease = nil
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	r.e.running[r.attempt.ID] = r
}

// close removes what is left of the attempt, unless the container is kept or left to a later worker.
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
	if r.lifecycle.State().IsLeft() {
		return
	}
	if r.keep && r.failed() {
		r.keepForInspection()
	} else {
		r.remove()
	}
	for _, dir := range r.attempt.Dirs.Private() {
		if err := restorePermissions(dir); err != nil {
			r.e.logger.Warn("cannot restore the permissions of a workspace", "container", r.name, "error", err)
		}
	}
}

// errClosed is the cause that ends the calls about a container that has ended.
var errClosed = errors.New("the attempt has ended")

// failed reports whether the program ended by itself with an exit code other than 0.
func (r *running) failed() bool {
	select {
	case <-r.ended:
	default:
		return false
	}
	return !r.lifecycle.State().IsStopped() && r.exit.err == nil && r.exit.code != 0
}

// follow forwards the output of a started container, ends the container when ctx ends, and returns its result.
func (r *running) follow(ctx context.Context) (executor.Result, error) {
	defer r.calls.Wait()
	defer r.giveUp(errClosed)
	if r.main.looked != nil {
		r.calls.Go(func() { defer close(r.main.looked); r.lookForProcess(r.life) })
	}
	r.calls.Go(func() { r.awaitEnd(r.life) })
	printed := make(chan struct{})
	r.calls.Go(func() { defer close(printed); r.out.copy(r.life) })

	var stops sync.WaitGroup
	stops.Add(1)
	unstop := context.AfterFunc(ctx, func() {
		defer stops.Done()
		if errors.Is(context.Cause(ctx), executor.ErrLetGo) {
			if _, ok := r.lifecycle.Leave(); ok {
				r.giveUp(executor.ErrLetGo)
			}
			return
		}
		r.stop(r.life, r.giveUp)
	})
	<-r.ended
	if unstop() {
		stops.Done()
	}
	stops.Wait()
	state := r.lifecycle.State()
	stopped := state.IsStopped()
	if stopped {
		select {
		case <-printed:
		case <-time.After(printPatience):
			r.attempt.Notify("the end of the container's output could not be read")
			r.giveUp(errors.New("its output did not end"))
			<-printed
		}
	} else {
		<-printed
	}
	if state.IsLeft() {
		return executor.Result{ExitCode: -1, Image: digest(r.image), Container: shortID(r.id), Stopped: true}, r.out.err
	}
	if r.exit.err != nil && !stopped {
		return executor.Result{}, errors.Join(fmt.Errorf("container %s: %w", r.name, r.exit.err), r.out.err)
	}
	result := executor.Result{
		ExitCode: r.exit.code, Signal: signalOf(r.exit.code), Image: digest(r.image), Container: shortID(r.id),
		// If the lease is lost, whatever enforces it may have ended the container.
		Stopped: stopped || r.attempt.Lease.Lost(),
	}
	if r.exit.oomKilled && (r.exit.code == 0 || !stopped) {
		result.SetOOM()
	}
	if !result.Stopped && r.isLarge && result.ExitCode != 0 && r.out.isTooLong() {
		result.Failure = &executor.Failure{Reason: v1.ReasonBadSpec, Err: executor.TooLongError("start container " + r.name)}
	}
	if stopped && r.exit.err != nil {
		return result, fmt.Errorf("container %s: %w", r.name, r.exit.err)
	}
	return result, r.out.err
}

// printPatience is how long reading the last output of a stopped container may take.
const printPatience = 10 * time.Second

// workload returns the names by which the container's engine and its users know the container.
func (r *running) workload() *v1.Workload {
	return &v1.Workload{Container: shortID(r.id), Image: r.imageName}
}

// shortID returns the start of a container's id, as engines list and accept it.
func shortID(id string) string { return id[:min(len(id), 12)] }

// digest returns the digest of a content address.
func digest(image string) string { return image[strings.LastIndexByte(image, '@')+1:] }

// lookForProcess looks up the container's process on this machine.
func (r *running) lookForProcess(ctx context.Context) {
	ctx, done := r.e.engine.guard(ctx)
	defer done()
	if c, err := r.e.docker.ContainerInspect(ctx, r.id); err == nil && c.State != nil {
		r.main.record(r.id, c)
	}
}
