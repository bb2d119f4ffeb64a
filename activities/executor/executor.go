package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

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
	// When ctx is done, Run asks the program to stop (SIGTERM) and waits for the attempt's grace period, but not beyond the end
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

// Limits bounds the resources of the machine that an attempt may use.
type Limits struct {
	// Cores may be a fraction; 0 means no limit.
	Cores float64
	// Memory is in bytes; 0 means no limit.
	Memory int64
	// Processes bounds processes and threads; 0 means no limit.
	Processes int64
}

// Attempt is one execution of a task on this node.
type Attempt struct {
	// ID is unique to the dispatch across all nodes: "<run>@<chain>/<task>/c<claim>". Everything that the attempt leaves on the
	// node is marked with it.
	ID       string
	Identity Identity
	Limits   Limits
	// WorkspaceDir is the attempt's private directory. It holds the files named by the SWITCHYARD_* variables in Env. TempDir is
	// the directory for temporary files, in WorkspaceDir or in another directory that only the worker can enter. SharedDir is
	// shared by all nodes. Each is "" if the attempt has none.
	WorkspaceDir, TempDir, SharedDir string
	// Notify receives messages of the system for readers of the attempt's log, one line a call. It may be called before spawned.
	// If it is nil, the messages are dropped.
	Notify func(line string)
	// Spec is the task's spec; its contents depend on the task type.
	Spec *structpb.Struct
	// Env holds all environment variables that are added to those of the node.
	Env map[string]string
	// SecretEnv maps the variables in Env that hold secrets to where their values come from, such as "env:API_KEY".
	SecretEnv map[string]string
	// Mask replaces the values of secrets in a text, or is nil if there are none. The caller already masks what is written to
	// Stdout, Stderr, Notify and Journal.
	Mask func(text string) string
	// BaseDir is the directory against which relative working directories are resolved.
	BaseDir string
	// Stdout and Stderr receive the output of the program; nil discards it. The executor writes to each from one goroutine at a
	// time, but to both concurrently, and never after Run has returned. A slow writer slows the program down. After a write error
	// the program continues, and Run returns the error with the result.
	Stdout, Stderr io.Writer
	// Located reports what runs the attempt, by the names that other tools use, so that users can find it. Executors call it when the
	// program starts, and again when they learn more. It is quick, and may be nil.
	Located func(w *v1.Workload)
	// Stdin is the input of the program, or nil for /dev/null. Run does not close it. Only the shell executor uses it.
	Stdin *os.File
	// Journal keeps the state from which a later attempt of the task continues, or is nil if nothing is kept. Only agent
	// executors use it.
	Journal Journal
	// Continues reports that an earlier dispatch has already started the attempt. Only remote executors use this field and the
	// following ones up to Resources.
	Continues bool
	// LogPosition is the last position passed to MarkLog that the log has recorded, or "". The executor starts
	// reading its log source there, and Stdout skips what the log already has from there on.
	LogPosition string
	// MarkLog records the position in the log source of what is written to Stdout next. The goroutine that writes to Stdout calls
	// it, between two writes.
	MarkLog func(position string)
	// Waits reports to the user what the attempt is waiting for, or "" when it no longer waits.
	Waits func(text string)
	// Timeout is the longest the attempt may take; 0 means no limit. The caller ends ctx when it expires.
	Timeout time.Duration
	// Resources are the resources that the task requests, or nil.
	Resources *v1.Resources
	// Grace is the time between SIGTERM and SIGKILL.
	Grace time.Duration
	// EndGrace ends the grace period early when it is closed. It may be nil.
	EndGrace <-chan struct{}
	// Lease bounds the attempt, or is nil if it is unbounded.
	Lease *Lease
	// Suspended reports that a reattached attempt was paused by a user. An attempt that stands still because a worker ended while
	// capturing it is resumed instead.
	Suspended bool
	// GPUs are the indices of the GPUs that the attempt gets. An empty non-nil slice hides all GPUs from it. With nil the attempt
	// sees every GPU of the machine.
	GPUs []int32
	// NUMANode is the NUMA node that the attempt is bound to, or nil. With NUMAOptional, the attempt runs unbound if it cannot be
	// bound.
	NUMANode     *int32
	NUMAOptional bool
}

// PrivateDirs returns the directories that belong to the attempt alone. None of them lies inside another.
func (a *Attempt) PrivateDirs() []string {
	var dirs []string
	if a.WorkspaceDir != "" {
		dirs = append(dirs, a.WorkspaceDir)
	}
	if a.TempDir != "" && (a.WorkspaceDir == "" || !strings.HasPrefix(a.TempDir, a.WorkspaceDir+"/")) {
		dirs = append(dirs, a.TempDir)
	}
	return dirs
}

// Locate reports what runs the attempt, if anything listens.
func (a *Attempt) Locate(w *v1.Workload) {
	if a.Located != nil {
		a.Located(w)
	}
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
		"%s: %s: Linux limits each argument and each variable to 128 KiB; read large values from the file $SWITCHYARD_INPUT instead", name, ArgumentsTooLong)}
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
