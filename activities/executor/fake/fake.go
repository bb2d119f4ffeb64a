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
)

// Step is what one attempt does, in the order of the fields. The zero Step
// succeeds at once.
type Step struct {
	// StartErr is returned before anything starts, as it is: an
	// *executor.StartError is the task's fault, any other one the node's.
	StartErr error
	// Stdout and Stderr are printed.
	Stdout, Stderr string
	// Output and ContextUpdate are written to the files that the attempt's
	// environment names.
	Output, ContextUpdate string
	// Duration is how long it then runs.
	Duration time.Duration
	// Block makes it run until Release, or until it is stopped.
	Block bool
	// IgnoreTerm makes it run on, when it is stopped, to the end of the grace period or of the lease.
	IgnoreTerm bool
	// IgnoreKill makes it run on, whatever happens, until Release: a program that the kernel does not let go.
	IgnoreKill bool
	// Err is returned instead of a result, as a fault of the node.
	Err error
	// Result is how it ends unless it is stopped before, or Release was called meanwhile.
	Result executor.Result
}

// Exit is a step that ends with an exit code.
func Exit(code int) Step { return Step{Result: executor.Result{ExitCode: code}} }

// Call is one attempt that was run.
type Call struct {
	Task    string
	Attempt executor.Attempt
}

// Executor follows a script. Its methods may be called from several goroutines.
type Executor struct {
	taskType string
	script   map[string][]Step

	mu      sync.Mutex
	calls   []Call
	running map[string]int
	gates   map[string]chan struct{}
	// paused has the ids of the attempts that run, with what is closed when one that is
	// suspended continues; nil: it is not.
	paused map[string]chan struct{}
	// changed is closed and replaced whenever calls or running change.
	changed chan struct{}
}

var _ executor.Executor = (*Executor)(nil)

// New returns an executor for a task type. The script has the steps of each
// task: its first attempt does the first, and all after the last repeat that.
// A task that is not in it, or has no steps, succeeds at once.
func New(taskType string, script map[string][]Step) *Executor {
	return &Executor{
		taskType: taskType, script: script,
		running: make(map[string]int), gates: make(map[string]chan struct{}),
		paused: make(map[string]chan struct{}), changed: make(chan struct{}),
	}
}

// Type is the task type given to New.
func (e *Executor) Type() string { return e.taskType }

// Run does the next step of the attempt's task.
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
	spawned()
	if step.lasts() {
		e.count(task, 1)
		defer e.count(task, -1)
	}
	if err := step.write(a); err != nil {
		return executor.Result{}, err
	}
	if !step.wait(ctx, gate) || !e.awaitResume(ctx, a.ID) {
		return step.stop(a, gate), nil
	}
	return step.Result, step.Err
}

// lasts reports whether a test can meet the step while it runs: one that does not wait is over before an observer acts.
func (s Step) lasts() bool { return s.Block || s.Duration > 0 }

// begin notes the call and finds its step.
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
	e.change()
	steps := e.script[task]
	if len(steps) == 0 {
		return Step{}, e.gate(task)
	}
	return steps[min(before, len(steps)-1)], e.gate(task)
}

// write prints what the step prints and writes its files.
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

// wait reports whether the step came to its end, and not ctx.
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

// stop is how the step ends when it is stopped.
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

// Release lets the attempts of a task continue that block, those that come later included.
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

// Calls lists the attempts so far in the order of their start.
func (e *Executor) Calls() []Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// Await waits until condition is true of the calls so far and of the number of
// running attempts by task, or ctx is done. Attempts whose step neither blocks nor
// has a duration do not count as running. The condition must not keep its arguments.
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

// AwaitRunning waits until an attempt of the task runs whose step blocks or has a
// duration, or ctx is done.
func (e *Executor) AwaitRunning(ctx context.Context, task string) error {
	return e.Await(ctx, func(_ []Call, running map[string]int) bool { return running[task] > 0 })
}

func (e *Executor) count(task string, by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[task] += by
	e.change()
}

func (e *Executor) change() {
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

// taskOf is the task that an attempt belongs to: its environment says so, and
// where it has none, its id "<run>@<chain>/<task>/c<claim>".
func taskOf(a executor.Attempt) string {
	if task := a.Env["SWITCHYARD_TASK"]; task != "" {
		return task
	}
	if parts := strings.Split(a.ID, "/"); len(parts) == 3 {
		return parts[1]
	}
	return a.ID
}
