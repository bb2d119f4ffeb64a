package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/pipes"
	"switchyard/activities/executor/shell/poll"
	"switchyard/activities/executor/shell/procfs"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// linger is how long processes that a program left in the background may continue.
	linger = 200 * time.Millisecond
)

var errClosed = errors.New("shell executor is closed")

// Run runs the attempt's command and returns when none of its processes is left. An unusable spec,
// working directory, environment or program is an *executor.StartError. With an error from one of
// the attempt's writers, the Result is complete nevertheless.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	if e.closed.Load() {
		return executor.Result{}, errClosed
	}
	if ctx.Err() != nil || a.Lease.Lost() {
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	}
	p, err := e.program(a)
	if err != nil {
		return executor.Result{}, err
	}
	if err := e.guard.ensure(e.trees); err != nil {
		return executor.Result{}, err
	}
	t, err := e.enclose(a, p.sandbox)
	if err != nil {
		return executor.Result{}, err
	}
	pair, err := pipes.NewDedicated(a.Stdout, a.Stderr, &e.buffers)
	if err != nil {
		return executor.Result{}, errors.Join(err, t.end())
	}
	return newRunning(a.ID, t, a, pair, t.end).run(ctx, e, p, spawned)
}

// program is a command that is ready to start.
type program struct {
	path    string
	argv    []string
	dir     string
	environ []string
	// sandbox reports that the program runs in a sandbox, and nodeNetwork that the sandbox has the
	// node's network.
	sandbox, nodeNetwork bool
}

func (e *Executor) program(a executor.Attempt) (program, error) {
	c, err := parseSpec(a.Spec)
	if err != nil {
		return program{}, badSpec(fmt.Errorf("shell spec: %w", err))
	}
	p := program{argv: c.argv, sandbox: c.sandbox, nodeNetwork: c.nodeNetwork}
	if p.dir, err = c.directory(a.Dirs.Base); err != nil {
		return program{}, cannotRun(err)
	}
	node := e.environ
	if c.sandbox {
		node = sandboxed(node)
	}
	if p.environ, err = environment(node, e.withGPUs(a.Env, a.Binding), p.dir, a.ID); err != nil {
		return program{}, badSpec(err)
	}
	if c.argv == nil {
		p, err = e.interpreted(p, c, a)
	} else {
		p.path, err = lookPath(c.argv[0], p.dir, p.environ)
	}
	if err != nil {
		return program{}, err
	}
	if a.Binding.NUMANode != nil {
		return e.bind(p, *a.Binding.NUMANode, a.Binding.NUMAOptional)
	}
	return p, nil
}

func cannotRun(err error) error {
	return &executor.StartError{ExitCode: codeCannotRun, Err: err}
}

// badSpec returns the error of a spec or an environment with which no attempt can start.
func badSpec(err error) error {
	return &executor.StartError{ExitCode: codeCannotRun, BadSpec: true, Err: err}
}

// running is one attempt from its start to its end.
type running struct {
	// id is the id of the attempt itself, even in a batch.
	id      string
	tree    *processTree
	attempt executor.Attempt
	// program, process and hasExited, which reports whether the program has ended, are set once the program has started.
	program   program
	process   *os.Process
	hasExited func() bool
	// beside tracks the programs of callers that have entered.
	beside beside
	pipes  pipes.Pipes
	// end ends whatever is left of the attempt.
	end func() error

	// done is closed when the tree is empty or about to be killed.
	done   chan struct{}
	mu     sync.Mutex
	exited bool
	// leaving reports that a later worker is to continue the attempt.
	leaving bool
	// stopAt is the end of the grace period, or zero unless ctx ended first.
	stopAt time.Time

	// steer is held while the tree is suspended or resumed.
	steer     sync.Mutex
	suspended bool

	// startedAt is when the program started. left is closed when a later worker is to continue the attempt, or cannot because of
	// leaveErr.
	startedAt time.Time
	left      chan struct{}
	leaveErr  error
}

// newRunning returns an attempt that has not started.
func newRunning(id string, t *processTree, a executor.Attempt, p pipes.Pipes, end func() error) *running {
	return &running{id: id, tree: t, attempt: a, pipes: p, end: end, done: make(chan struct{}), left: make(chan struct{})}
}

func (r *running) run(ctx context.Context, e *Executor, p program, spawned func()) (executor.Result, error) {
	a := r.attempt
	if a.Lease.Lost() {
		// This process was held up after Run began.
		r.pipes.Forked()
		return executor.Result{ExitCode: -1, Stopped: true}, errors.Join(r.end(), r.pipes.Finish())
	}
	out, errs := r.pipes.Files()
	process, err := r.start(ctx, p, []*os.File{cmp.Or(a.Stdin, e.null), out, errs})
	r.pipes.Forked()
	if err == errStopped {
		return executor.Result{ExitCode: -1, Stopped: true}, errors.Join(r.end(), r.pipes.Finish())
	}
	if err != nil {
		return executor.Result{}, errors.Join(err, r.end(), r.pipes.Finish())
	}
	// Read this after the start: until this attempt has executed its program, other attempts may
	// make the worker grow, and the program's own peak includes the worker's peak at that moment.
	baseline := ownPeak()
	r.startedAt = time.Now()
	a.Locate(&v1.Workload{Pid: int32(process.Pid)})
	spawned()
	r.program, r.process = p, process
	r.hasExited = func() bool { return procfs.HasExited(process.Pid) }
	return r.follow(ctx, e, func(s *sampler) (executor.Result, bool, error) {
		state, err := process.Wait()
		sampled := s.stop()
		if err != nil {
			return executor.Result{}, false, err
		}
		result := resultOf(state)
		result.PeakMemory = peakMemory(result.PeakMemory, baseline, sampled)
		return result, isKilled(state), nil
	})
}

// follow waits for the end of the running program and of all its processes. wait waits for the program, stops the sampler, and
// reports whether SIGKILL has ended the program.
func (r *running) follow(ctx context.Context, e *Executor, wait func(*sampler) (result executor.Result, killed bool, err error)) (executor.Result, error) {
	a := r.attempt
	e.steered.enter(r.id, r)
	defer e.steered.leave(r.id)
	r.pipes.Begin()

	var stops sync.WaitGroup
	stops.Add(1)
	unstop := context.AfterFunc(ctx, func() {
		defer stops.Done()
		if !errors.Is(context.Cause(ctx), executor.ErrLetGo) || !e.leave(r) {
			r.stop()
		}
	})
	sampler := newSampler(r.tree)

	var result executor.Result
	var killed bool
	var err error
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		result, killed, err = wait(sampler)
	}()
	ended := waited
	select {
	case <-waited:
		r.mu.Lock()
		if r.exited = true; r.leaving { // the watchdog gets its output, and the next worker how it has ended
			ended = nil
		}
		r.mu.Unlock()
	case <-r.left:
	}
	select {
	case <-ended:
	case <-r.left:
		sampler.stop()
		return executor.Result{ExitCode: -1, Stopped: true}, r.leaveErr
	}
	r.beside.close()
	r.awaitEmptyTree(ctx)
	if unstop() {
		stops.Done()
	}
	stops.Wait()
	r.beside.wait()
	oom := err == nil && r.tree.oomKilled()
	if killed {
		r.tree.noteSIGKILL()
	}
	endErr := r.end()
	writeErr := r.pipes.Finish()
	if err != nil {
		return executor.Result{}, errors.Join(fmt.Errorf("wait for %s: %w", a.ID, err), endErr)
	}
	// If the lease is lost, the watchdog may have ended the attempt.
	result.Stopped = !r.stopAt.IsZero() || a.Lease.Lost()
	if oom {
		result.SetOOM()
	}
	return result, errors.Join(writeErr, endErr)
}

// errStopped reports that the attempt was stopped before its program started.
var errStopped = errors.New("stopped before it started")

// start starts the program, in a sandbox if it needs one.
func (r *running) start(ctx context.Context, p program, files []*os.File) (*os.Process, error) {
	if p.sandbox {
		return r.startBoxed(ctx, p, files)
	}
	process, err := r.tree.forker.Start(p.path, p.argv, &os.ProcAttr{
		Dir: p.dir, Env: p.environ, Files: files, Sys: r.tree.attr(),
	})
	if err != nil {
		return nil, startError(p.argv[0], err)
	}
	r.tree.started(process.Pid)
	return process, nil
}

// stop asks the processes to end, and kills them when the grace period or the lease is over. A
// program that has already ended by itself, but has not been waited for, does not count as stopped:
// its result stands.
func (r *running) stop() {
	r.mu.Lock()
	if r.exited || r.hasExited() {
		r.mu.Unlock()
		return
	}
	r.stopAt = time.Now().Add(r.attempt.Grace)
	r.mu.Unlock()
	// Suspended processes receive the signal when they are resumed.
	r.steer.Lock()
	r.tree.terminate()
	if r.suspended {
		r.suspended = false
		_ = r.tree.resume()
	}
	r.steer.Unlock()
	if r.attempt.AwaitKill(r.done) {
		r.tree.kill()
	}
}

// awaitEmptyTree lets the rest of the tree end by itself once the program has ended: until the end of the
// grace period if it was stopped, else for a short while.
func (r *running) awaitEmptyTree(ctx context.Context) {
	defer close(r.done)
	r.mu.Lock()
	r.exited = true
	until, over := r.stopAt, (<-chan struct{})(nil)
	r.mu.Unlock()
	_ = r.unsuspend() // for the remaining processes of a program that was killed
	if until.IsZero() {
		until, over = time.Now().Add(linger), ctx.Done()
	}
	for pause := 100 * time.Microsecond; !r.tree.isEmpty(); pause = min(2*pause, poll.MaxPause) {
		left := time.Until(until)
		if left <= 0 {
			return
		}
		select {
		case <-over:
			return
		case <-time.After(min(pause, left)):
		}
	}
}
