package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Executor runs attempts of one task type. Its methods are safe for concurrent use.
type Executor interface {
	// Type returns the task type, such as "shell".
	Type() string

	// Capabilities returns what the executor can do beyond Run. The answer never changes.
	Capabilities() Capabilities

	// Run starts the attempt and returns when it has ended and nothing of it is left: no process, no container, no goroutine. It
	// calls spawned once, as soon as the attempt's own program has started. It does not call spawned if the program could not be
	// started, or if ctx was done before. No output is written before spawned returns, so spawned must be quick.
	//
	// When ctx is done, Run asks the program to stop (SIGTERM, or Ending.Signal) and waits for the attempt's grace period, but not beyond the end
	// of its lease. Then it kills whatever is left and returns a Result with Stopped set. Only the caller needs to know why ctx
	// ended. An attempt whose lease is lost does not start, and its Result also has Stopped set.
	//
	// A program that fails yields a Result and a nil error. A program that cannot be started through a fault of the task (no such
	// command, no such directory, bad spec) yields a *StartError. Any other error is a fault of the node.
	Run(ctx context.Context, a Attempt, spawned func()) (Result, error)
}

// ErrNotRunning reports that no attempt runs under an id, or that the attempt is ending.
var ErrNotRunning = errors.New("the attempt is not running")

// Refusal is the error of an executor that cannot carry out a request on a running attempt.
type Refusal struct {
	// Text explains the refusal to the user.
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Identity identifies an attempt within the deployment.
type Identity struct {
	Run, Task, Node string
	// Chain is the chain of workflow executions that make up the run, or "" if unknown.
	Chain string
	// Fleet distinguishes nodes of the same name in different fleets. It is "" if unknown.
	Fleet string
	// Generation is the generation of the run. PutBacks counts how often the task was put back within the generation after it had
	// ended; attempt numbers restart at 0 each time. Only remote tasks use PutBacks.
	Generation, PutBacks int32
	// Index is the number of a fan-out instance, or -1 if the task is not fanned out.
	Index int32
	// Attempt counts from 0. Claim is the number of the dispatch.
	Attempt, Claim int32
}

// Result describes how an attempt ended.
type Result struct {
	// ExitCode is the program's own exit code, or 128 plus the number of the signal that ended it.
	ExitCode int
	// Signal names the signal that ended the program, such as "SIGKILL", or is "" if none did.
	Signal string
	// OOMKilled reports that the kernel or the container engine killed the program for its memory use.
	OOMKilled bool
	// Warning states what went wrong although the program succeeded, in one line, or is "".
	Warning string
	// Stopped reports that the program ended because ctx was done, rather than by itself before that.
	Stopped bool
	// CPUTime is the processor time of the program and its children.
	CPUTime time.Duration
	// PeakMemory is the largest resident set of any of its processes, in bytes; 0 means unknown.
	PeakMemory int64
	// Image is the content address of the container's image, or "" without a container.
	Image string
	// Container is the abbreviated id of the container, as the engine lists it, or "" without a container.
	Container string
	// Released explains why a remote executor has let go of the attempt by itself, so that another node must continue it. It is ""
	// otherwise.
	Released string
	// Failure explains the failure of an attempt that is not a program with an exit code. It is nil otherwise.
	Failure *Failure
	// Agent is the report of an agent, or nil for any other attempt.
	Agent *AgentReport
}

// AgentReport describes what an agent attempt has done.
type AgentReport struct {
	// Usage covers all attempts of the task so far. Before covers those before this one, or is nil if there were none.
	Usage, Before *v1.AgentUsage
	// Events are the turns and tool calls that no earlier attempt has reported, oldest first. The newest Own of them belong to
	// this attempt.
	Events []*historyv1.AgentEvent
	Own    int
}

// Failure describes the failure of an attempt that has no exit code.
type Failure struct {
	// Reason is one of the constants v1.Reason... With v1.ReasonEvicted the attempt counts as lost, not as failed.
	Reason string
	// Err states the problem and its remedy in one line.
	Err error
}

// StartError reports that an attempt could not start through a fault of its task.
type StartError struct {
	// ExitCode is what a shell would exit with: 127 if the command is not found, 126 if it cannot be run.
	ExitCode int
	// BadSpec reports that the expanded spec is at fault, so no other attempt could start either.
	BadSpec bool
	Err     error
}

// ArgumentsTooLong is the message of E2BIG. An engine passes it on as text.
const ArgumentsTooLong = "argument list too long"

// TooLongError returns the error of a program whose arguments and environment exceed the limits of the kernel.
func TooLongError(name string) *StartError {
	return &StartError{ExitCode: 126, BadSpec: true, Err: fmt.Errorf(
		"%s: %s: Linux limits each argument and each variable to 128 KiB, and all together to a quarter of the stack limit, usually 2 MiB; read large values from the file $SWITCHYARD_INPUT instead", name, ArgumentsTooLong)}
}

// Error returns the message.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// AsStartError returns the StartError in err's chain, or nil.
func AsStartError(err error) *StartError {
	if s, ok := errors.AsType[*StartError](err); ok {
		return s
	}
	return nil
}
