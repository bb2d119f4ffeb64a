package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"switchyard/activities/executor"
)

const (
	// linger is how long what a program has left in the background may go on.
	linger = 200 * time.Millisecond
	// watch bounds the interval at which an emptying tree is looked at.
	watch = 20 * time.Millisecond
)

// Run starts the attempt's command and returns when none of its processes is
// left. A spec, working directory, environment or program that cannot be used
// is a *executor.StartError. With an error from one of the attempt's writers the
// Result is nevertheless whole.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	if e.closed.Load() {
		return executor.Result{}, errors.New("shell executor is closed")
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
	t, err := e.trees.enclose(a.ID, a.Lease)
	if err != nil {
		return executor.Result{}, fmt.Errorf("enclose %s: %w", a.ID, err)
	}
	r := &running{tree: t, attempt: a, done: make(chan struct{})}
	result, err := r.run(ctx, e, p, spawned)
	return result, errors.Join(err, r.endErr)
}

// program is a command that is ready to start.
type program struct {
	path    string
	argv    []string
	dir     string
	environ []string
}

func (e *Executor) program(a executor.Attempt) (program, error) {
	c, err := parseSpec(a.Spec)
	if err != nil {
		return program{}, cannotRun(fmt.Errorf("shell spec: %w", err))
	}
	p := program{path: e.shell, argv: []string{"sh", "-c", c.line}}
	if p.dir, err = c.directory(a.BaseDir); err != nil {
		return program{}, cannotRun(err)
	}
	if p.environ, err = environment(e.environ, withGPUs(a.Env, a.GPUs), p.dir, a.ID); err != nil {
		return program{}, cannotRun(err)
	}
	if c.argv != nil {
		p.argv = c.argv
		if p.path, err = lookPath(c.argv[0], p.dir, p.environ); err != nil {
			return program{}, err
		}
	}
	if a.NUMANode != nil {
		return e.bind(p, *a.NUMANode, a.NUMAOptional)
	}
	return p, nil
}

func cannotRun(err error) error {
	return &executor.StartError{ExitCode: codeCannotRun, Err: err}
}

// running is one attempt from its start to its end.
type running struct {
	tree    tree
	attempt executor.Attempt

	// done is closed when the tree is empty or killed.
	done   chan struct{}
	mu     sync.Mutex
	exited bool
	// stopAt is when the grace period ends; zero unless ctx ended first.
	stopAt time.Time
	endErr error
}

func (r *running) run(ctx context.Context, e *Executor, p program, spawned func()) (executor.Result, error) {
	a := r.attempt
	out, err := newStream(a.Stdout, &e.buffers)
	if err != nil {
		return executor.Result{}, errors.Join(err, r.tree.end())
	}
	defer out.read.Close()
	errs, err := newStream(a.Stderr, &e.buffers)
	if err != nil {
		out.write.Close()
		return executor.Result{}, errors.Join(err, r.tree.end())
	}
	defer errs.read.Close()

	if a.Lease.Lost() {
		// This process was held up since Run began.
		out.write.Close()
		errs.write.Close()
		return executor.Result{ExitCode: -1, Stopped: true}, r.tree.end()
	}
	process, err := e.forker.start(p.path, p.argv, &os.ProcAttr{
		Dir: p.dir, Env: p.environ, Files: []*os.File{e.null, out.write, errs.write}, Sys: r.tree.attr(),
	})
	out.write.Close()
	errs.write.Close()
	if err != nil {
		return executor.Result{}, errors.Join(startError(p.argv[0], err), r.tree.end())
	}
	// Not before the start: other attempts make the worker grow until this one
	// has executed its program, and the peak of that moment is in what it leaves.
	baseline := ownPeak()
	r.tree.started(process.Pid)
	spawned()

	var copies, stops sync.WaitGroup
	copies.Go(out.copy)
	copies.Go(errs.copy)
	stops.Add(1)
	unstop := context.AfterFunc(ctx, func() {
		defer stops.Done()
		r.stop()
	})
	sampler := newSampler(r.tree)

	state, err := process.Wait()
	sampled := sampler.stop()
	r.settle(ctx)
	if unstop() {
		stops.Done()
	}
	stops.Wait()
	oom := err == nil && !state.Success() && r.tree.oomKilled()
	r.endErr = r.tree.end()
	out.finish()
	errs.finish()
	copies.Wait()
	if err != nil {
		return executor.Result{}, fmt.Errorf("wait for %s: %w", a.ID, err)
	}

	result := resultOf(state)
	// With the lease lost, the watchdog may have ended it.
	result.Stopped = !r.stopAt.IsZero() || a.Lease.Lost()
	result.OOMKilled = oom
	result.PeakMemory = peakMemory(result.PeakMemory, baseline, sampled)
	return result, errors.Join(named("standard output", out.err), named("standard error", errs.err))
}

// stop asks the processes to end, and ends them when the grace period or the
// lease is over.
func (r *running) stop() {
	r.mu.Lock()
	if r.exited {
		r.mu.Unlock()
		return
	}
	r.stopAt = time.Now().Add(r.attempt.Grace)
	r.mu.Unlock()
	r.tree.terminate()
	if r.attempt.AwaitKill(r.done) {
		r.tree.kill()
	}
}

// settle lets the rest of the tree end by itself once the program has: until
// the grace period is over when it was stopped, else for a short while.
func (r *running) settle(ctx context.Context) {
	defer close(r.done)
	r.mu.Lock()
	r.exited = true
	until, over := r.stopAt, (<-chan struct{})(nil)
	r.mu.Unlock()
	if until.IsZero() {
		until, over = time.Now().Add(linger), ctx.Done()
	}
	for pause := 100 * time.Microsecond; !r.tree.empty(); pause = min(2*pause, watch) {
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

func named(stream string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", stream, err)
}
