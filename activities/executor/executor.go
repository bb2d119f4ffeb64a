package executor

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// Executor runs attempts of one task type. Its methods may be called from
// several goroutines at once.
type Executor interface {
	// Type is the task type that it runs, such as "shell".
	Type() string

	// Run starts the attempt and returns when it has ended and nothing of it is
	// left: no process, no container, no goroutine. It calls spawned once, as
	// soon as the attempt's own program has started, and not at all when it
	// could not be started, or ctx was done before. No output is written before
	// spawned has returned, so it must not take long.
	//
	// When ctx is done, Run asks the program to stop (SIGTERM), waits for the
	// attempt's grace period, but not beyond the end of its lease, then ends by
	// force whatever is left, and returns a Result with Stopped set. Why ctx ended
	// is the caller's business. An attempt whose lease is lost does not start, and
	// its Result has Stopped set, too.
	//
	// A program that fails is a Result, and the error is nil. A program that
	// cannot be started through a fault of the task's own (no such command, no
	// such directory, bad spec) is a *StartError. Any other error is a fault of
	// the node.
	Run(ctx context.Context, a Attempt, spawned func()) (Result, error)
}

// Batcher is an Executor that runs attempts one after the other for less than each
// costs by itself.
type Batcher interface {
	Executor

	// Batch begins a batch of attempts. The id and the lease are those of all of them;
	// what the attempts themselves say of that does not count. Its Close must be called.
	Batch(id string, lease *Lease) (Batch, error)
}

// Batch is a batch of attempts. Its methods are called by one goroutine at a time.
type Batch interface {
	// Run is Executor.Run of the next attempt, and nothing of it is left afterwards.
	Run(ctx context.Context, a Attempt, spawned func()) (Result, error)

	// Close ends the batch. An error says that something of it is left on the node.
	Close() error
}

// Steerer is an Executor whose attempts can be suspended.
type Steerer interface {
	Executor

	// Pause suspends the attempt that runs under an id: none of its processes continues
	// until Resume, or until ctx of its Run ends. ErrNotRunning says that none does.
	// To pause twice changes nothing.
	Pause(ctx context.Context, id string) error
	// Resume lets a suspended attempt continue. To resume one that is not changes nothing.
	Resume(ctx context.Context, id string) error
}

// ErrNotRunning says that no attempt runs under an id, or that it is ending.
var ErrNotRunning = errors.New("the attempt does not run")

// Refusal is the error of a Steerer that cannot do to an attempt what is asked.
type Refusal struct {
	// Text says why, for people.
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Survivor is an Executor whose attempts outlive the worker.
type Survivor interface {
	Executor

	// Survivors are the attempts that earlier workers have left on this node, those
	// that have ended since included. They are to be adopted or removed.
	Survivors(ctx context.Context, node string) ([]Leftover, error)
	// Reattach is Run of an attempt that has started already. Its writers get all that it
	// has ever printed, from the start. An attempt of which nothing is there any more is
	// ErrNotRunning.
	Reattach(ctx context.Context, a Attempt) (Result, error)
	// Remove ends what is left of an attempt, and returns when nothing is.
	Remove(ctx context.Context, l Leftover) error
}

// LeftoverEnder is an Executor whose attempts may outlive a worker that was killed, if
// only for moments.
type LeftoverEnder interface {
	Executor

	// EndLeftover ends what a worker that is dead has left of the attempt with an id, and
	// returns when nothing is.
	EndLeftover(ctx context.Context, id string) error
}

// Leftover is an attempt that a worker has left on the node.
type Leftover struct {
	// ID is that of the Attempt.
	ID       string
	Identity Identity
	// Running is false when it has ended by itself.
	Running bool
	// StartedAt is when its program has started; zero: it never has.
	StartedAt time.Time
	// Env are the variables of its program, as it was started.
	Env map[string]string
}

// Remote is an Executor whose attempts run outside of the node, where any node that has the executor can continue them. It finds
// them by the Identity without node and claim, and the dispatch with the highest claim has the attempt: the others let go of it.
//
// Run of an attempt that exists already continues it. When the cause of ctx is ErrLetGo, Run returns soon, leaves the attempt as it
// is, and its Result has Stopped set. The lease of an attempt only ends its Run in this way.
type Remote interface {
	Executor

	// Recorded says that the end of an attempt is in the store, so that what was kept of it may be removed. It is called once at
	// most after Run, and not after a Run that let go.
	Recorded(ctx context.Context, a Attempt) error
}

// ErrLetGo is the cause for which a Remote leaves an attempt to another node, and a Lasting to a later worker of its own.
var ErrLetGo = errors.New("another worker continues the attempt")

// Available is an Executor that cannot always run something.
type Available interface {
	Executor

	// Available returns nil when attempts can be started now, else why not, for people.
	// It answers at once.
	Available() error
}

// Identity says whose attempt it is.
type Identity struct {
	Run, Task, Node string
	// Chain is that of the executions of the run; empty: it is not known.
	Chain string
	// Fleet distinguishes nodes of one name that are of different fleets; empty: it is not known.
	Fleet string
	// Generation of the run, and PutBacks how often the task was put back after it had ended in it: the numbers of its attempts begin
	// again then. Only tasks that are Remote have PutBacks.
	Generation, PutBacks int32
	// Index is the number of an instance; -1: the task is not fanned out.
	Index int32
	// Attempt counts from 0, Claim is the number of the dispatch.
	Attempt, Claim int32
}

// Limits are what an attempt may take of the machine.
type Limits struct {
	// Cores may be a fraction; 0: no limit.
	Cores float64
	// Memory is in bytes; 0: no limit.
	Memory int64
	// Processes bounds processes and threads; 0: no limit.
	Processes int64
}

// Attempt is one execution of a task on this node.
type Attempt struct {
	// ID is unique to the dispatch on any node: "<run>@<chain>/<task>/c<claim>". Whatever the
	// attempt leaves on the node is marked with it.
	ID       string
	Identity Identity
	Limits   Limits
	// WorkspaceDir is the attempt's private directory, where the files are that
	// SWITCHYARD_* variables in Env name; TempDir is the one for its temporary files, in
	// WorkspaceDir or in another directory that only the worker can enter; SharedDir is one
	// that all nodes share; empty: there is none.
	WorkspaceDir, TempDir, SharedDir string
	// Notify takes what the system has to say of the attempt to whoever reads its log,
	// a line each; nil: they are dropped. It may be called before spawned.
	Notify func(line string)
	// Spec is the task's spec; the task type says what it holds.
	Spec *structpb.Struct
	// Env is the whole environment that is added to that of the node.
	Env map[string]string
	// SecretEnv says where the values of variables in Env are from that are secrets, such as "env:API_KEY".
	SecretEnv map[string]string
	// Mask replaces the values of secrets in a text; nil: there are none. The caller masks what is written to Stdout, Stderr,
	// Notify and Journal.
	Mask func(text string) string
	// BaseDir is the directory that relative working directories start at.
	BaseDir string
	// Stdout and Stderr take what the program prints; nil: it is thrown away. The
	// executor writes each from one goroutine at a time, but both at once, and
	// no more once Run has returned. A slow writer slows the program down; after
	// an error the program continues, and Run returns the error with the result.
	Stdout, Stderr io.Writer
	// Stdin is what the program reads, or nil for /dev/null. Run does not close it. Only the shell executor has it.
	Stdin *os.File
	// Journal keeps what a later attempt of the task continues from, or is nil if nothing is kept. Only executors of agents
	// use it.
	Journal Journal
	// Continues says that an earlier dispatch of the attempt has started it. Only executors that are Remote use it, and all up to
	// Resources.
	Continues bool
	// LogPosition is what MarkLog was last told of what the log has of the attempt; empty: nothing. Stdout leaves out what the log
	// has from there on.
	LogPosition string
	// MarkLog notes where in its source that begins which is written to Stdout next. It is called between two writes to Stdout, by
	// the goroutine that writes.
	MarkLog func(position string)
	// Waits says what the attempt waits for, for people; "": for nothing any more.
	Waits func(text string)
	// Timeout is how long the attempt may take; 0: there is no limit. The caller ends ctx then.
	Timeout time.Duration
	// Resources are those that the task asks for, or nil.
	Resources *v1.Resources
	// Grace is the time between SIGTERM and SIGKILL.
	Grace time.Duration
	// EndGrace ends that time early when it is closed, or is nil.
	EndGrace <-chan struct{}
	// Lease bounds the attempt; nil: nothing does.
	Lease *Lease
	// Suspended says that the attempt, which is reattached, was paused. One that stands still otherwise, because a worker has ended
	// while it captured it, continues.
	Suspended bool
	// GPUs are the indices of the GPUs that the attempt gets. Empty and not nil:
	// it gets none, and is to see none. Nil: nothing is said, it sees what there is.
	GPUs []int32
	// NUMANode is the NUMA node that the attempt is bound to; nil: none. With
	// NUMAOptional, where it cannot be bound it runs unbound.
	NUMANode     *int32
	NUMAOptional bool
}

// PrivateDirs returns the directories that are the attempt's alone, of which none lies in another.
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

// Result is how a program ended.
type Result struct {
	// ExitCode is the program's own, or 128 plus the number of the signal that ended it.
	ExitCode int
	// Signal names the signal that ended the program, such as "SIGKILL"; empty when none did.
	Signal string
	// OOMKilled says that the kernel or the container engine ended it for its memory use.
	OOMKilled bool
	// Stopped says that it ended because ctx was done, and not by itself before that.
	Stopped bool
	// StoppedAsAsked says that Lasting.Stop has ended it: that is no failure, whatever the exit code.
	StoppedAsAsked bool
	// CPUTime is the processor time of the program and its children.
	CPUTime time.Duration
	// PeakMemory is the largest resident set of one of its processes, in bytes; 0: not known.
	PeakMemory int64
	// Image is the content address of the container's image; empty: it is no container.
	Image string
	// Container is the start of the container's id, as the engine lists it; empty: it is no container.
	Container string
	// Released says, where it is not empty, why another node is to continue the attempt, which a Remote has let go of by itself.
	Released string
	// Failure is why an attempt failed that is no program with an exit code, or nil.
	Failure *Failure
	// Agent is what an agent reports, or nil if the attempt is of no agent.
	Agent *AgentReport
}

// AgentReport is what an attempt of an agent has done.
type AgentReport struct {
	// Usage counts all attempts of the task, and Before those before this one; Before is nil if there were none.
	Usage, Before *v1.AgentUsage
	// Events are the turns and the calls of tools that no earlier attempt has reported, oldest first. The newest Own of them are of
	// this attempt.
	Events []*v1.AgentEvent
	Own    int
}

// Failure is the failure of an attempt that no exit code describes.
type Failure struct {
	// Reason is one of v1.Reason...; with v1.ReasonEvicted the attempt is lost, and has not failed.
	Reason string
	// Err says what went wrong and what helps, in one line.
	Err error
}

// StartError says that an attempt could not start through a fault of its task.
type StartError struct {
	// ExitCode is what a shell would exit with: 127 for a command that is not
	// found, 126 for one that cannot be run.
	ExitCode int
	// BadSpec says that the spec is at fault, with its templates replaced: no other attempt could start.
	BadSpec bool
	Err     error
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
