package fake

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// Step is what one attempt does, in the order of the fields. The zero Step succeeds at once.
type Step struct {
	// StartErr is returned unchanged before anything starts. An *executor.StartError is a fault of the task, any other
	// error one of the node.
	StartErr error
	// Workload is what the attempt is said to run as.
	Workload *v1.Workload
	// Stdout and Stderr are printed.
	Stdout, Stderr string
	// Output and ContextUpdate are written to the files named by the attempt's environment.
	Output, ContextUpdate string
	// Do is called then, if it is not nil. Its error is one of the node.
	Do func(a executor.Attempt) error
	// Duration is how long the attempt then runs.
	Duration time.Duration
	// Block makes the attempt run until Release is called or it is stopped.
	Block bool
	// IgnoreTerm makes a stopped attempt continue to the end of the grace period or of the lease.
	IgnoreTerm bool
	// IgnoreKill makes the attempt run until Release, whatever happens, like a program that is stuck in the kernel.
	IgnoreKill bool
	// Err is returned instead of a result, as a fault of the node.
	Err error
	// Result is how the attempt ends, unless it is stopped first. With IgnoreKill it applies even then.
	Result executor.Result
}

// Exit returns a step that ends with an exit code.
func Exit(code int) Step { return Step{Result: executor.Result{ExitCode: code}} }

// Call is one attempt that was run.
type Call struct {
	Task    string
	Attempt executor.Attempt
}

// Executor follows a script. Its methods are safe for concurrent use.
type Executor struct {
	taskType string
	script   map[string][]Step

	mu      sync.Mutex
	calls   []Call
	running map[string]int
	gates   map[string]chan struct{}
	// paused has the ids of the running attempts. Each maps to a channel that is closed when the suspended attempt
	// resumes, or to nil if the attempt is not suspended.
	paused map[string]chan struct{}
	// changed is closed and replaced whenever calls or running change.
	changed chan struct{}
}

var _ executor.Executor = (*Executor)(nil)

// New returns an executor for a task type. script maps each task to its steps: the first attempt runs the first step,
// and attempts beyond the last step repeat it. A task without steps succeeds at once.
func New(taskType string, script map[string][]Step) *Executor {
	return &Executor{
		taskType: taskType, script: script,
		running: make(map[string]int), gates: make(map[string]chan struct{}),
		paused: make(map[string]chan struct{}), changed: make(chan struct{}),
	}
}

// Type returns the task type given to New.
func (e *Executor) Type() string { return e.taskType }

// Capabilities says that attempts can be suspended.
func (e *Executor) Capabilities() executor.Capabilities { return executor.Capabilities{Steer: e} }

// Run runs the next step of the attempt's task.
func (e *Executor) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	if ctx.Err() != nil || a.Lease.Lost() {
		return executor.Result{ExitCode: -1, Stopped: true}, nil
	}
	task := taskOf(a)
	step, gate := e.begin(task, a)
	if step.StartErr != nil {
		return executor.Result{}, step.StartErr
	}
	e.enter(a.ID)
	defer e.leave(a.ID, true)
	a.Locate(step.Workload)
	spawned()
	if step.isObservable() {
		e.count(task, 1)
		defer e.count(task, -1)
	}
	if err := step.write(a); err != nil {
		return executor.Result{}, err
	}
	if step.Do != nil {
		if err := step.Do(a); err != nil {
			return executor.Result{}, err
		}
	}
	if !step.wait(ctx, gate) || !e.awaitResume(ctx, a.ID) {
		return step.stop(a, gate), nil
	}
	return step.Result, step.Err
}

// isObservable reports whether a test can observe the step while it runs. A step that does not wait is over too soon.
func (s Step) isObservable() bool { return s.Block || s.Duration > 0 }

// begin records the call and returns its step.
func (e *Executor) begin(task string, a executor.Attempt) (Step, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := 0
	for _, c := range e.calls {
		if c.Task == task {
			before++
		}
	}
	e.calls = append(e.calls, Call{Task: task, Attempt: a})
	e.notifyWaiters()
	steps := e.script[task]
	if len(steps) == 0 {
		return Step{}, e.gate(task)
	}
	return steps[min(before, len(steps)-1)], e.gate(task)
}

// write prints the step's output and writes its files.
func (s Step) write(a executor.Attempt) error {
	for _, out := range []struct {
		to   io.Writer
		text string
	}{{a.Stdout, s.Stdout}, {a.Stderr, s.Stderr}} {
		if out.to == nil || out.text == "" {
			continue
		}
		if _, err := io.WriteString(out.to, out.text); err != nil {
			return err
		}
	}
	for _, file := range []struct{ variable, text string }{
		{"SWITCHYARD_OUTPUT", s.Output}, {"SWITCHYARD_CONTEXT_UPDATE", s.ContextUpdate},
	} {
		if file.text == "" {
			continue
		}
		if err := os.WriteFile(a.Env[file.variable], []byte(file.text), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", file.variable, err)
		}
	}
	return nil
}

// wait waits for the end of the step and reports whether it was reached before ctx ended.
func (s Step) wait(ctx context.Context, gate <-chan struct{}) bool {
	timer := time.NewTimer(s.Duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	if !s.Block {
		return true
	}
	select {
	case <-gate:
		return true
	case <-ctx.Done():
		return false
	}
}

// stop returns the result of a step that is stopped, once it has ended.
func (s Step) stop(a executor.Attempt, gate <-chan struct{}) executor.Result {
	switch {
	case s.IgnoreKill:
		<-gate
		return s.Result
	case s.IgnoreTerm:
		a.AwaitKill(nil)
		return executor.Result{ExitCode: 137, Signal: "SIGKILL", Stopped: true}
	}
	return executor.Result{ExitCode: 143, Signal: "SIGTERM", Stopped: true}
}

// Release lets the blocked attempts of a task continue, and later ones pass without blocking.
func (e *Executor) Release(task string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gate := e.gate(task)
	select {
	case <-gate:
	default:
		close(gate)
	}
}

// Calls returns the attempts so far in the order of their start.
func (e *Executor) Calls() []Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// Await waits until condition returns true for the calls so far and the number of running attempts by task, or until
// ctx is done. Attempts whose step neither blocks nor has a duration do not count as running. The condition must not
// keep its arguments.
func (e *Executor) Await(ctx context.Context, condition func(calls []Call, running map[string]int) bool) error {
	for {
		e.mu.Lock()
		holds, changed := condition(e.calls, e.running), e.changed
		e.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// AwaitRunning waits until an attempt of the task is running a step that blocks or has a duration, or until ctx is
// done.
func (e *Executor) AwaitRunning(ctx context.Context, task string) error {
	return e.Await(ctx, func(_ []Call, running map[string]int) bool { return running[task] > 0 })
}

func (e *Executor) count(task string, by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[task] += by
	e.notifyWaiters()
}

func (e *Executor) notifyWaiters() {
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *Executor) gate(task string) chan struct{} {
	gate, ok := e.gates[task]
	if !ok {
		gate = make(chan struct{})
		e.gates[task] = gate
	}
	return gate
}

// taskOf returns the task of an attempt. It reads the environment, or without one the id
// "<run>@<chain>/<task>/c<claim>".
func taskOf(a executor.Attempt) string {
	if task := a.Env["SWITCHYARD_TASK"]; task != "" {
		return task
	}
	if parts := strings.Split(a.ID, "/"); len(parts) == 3 {
		return parts[1]
	}
	return a.ID
}
