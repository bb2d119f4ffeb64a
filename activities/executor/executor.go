package executor

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
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

	// Batch begins a row of attempts. The id and the lease are those of all of them;
	// what the attempts themselves say of that does not count. Its Close must be called.
	Batch(id string, lease *Lease) (Batch, error)
}

// Batch is a row of attempts. Its methods are called by one goroutine at a time.
type Batch interface {
	// Run is Executor.Run of the next attempt, and nothing of it is left afterwards.
	Run(ctx context.Context, a Attempt, spawned func()) (Result, error)

	// Close ends the row. An error says that something of it is left on the node.
	Close() error
}

// Attempt is one execution of a task on this node.
type Attempt struct {
	// ID is unique to the dispatch on any node: "<run>/<task>/c<claim>". Whatever the
	// attempt leaves on the node is marked with it.
	ID string
	// Spec is the task's spec; the task type says what it holds.
	Spec *structpb.Struct
	// Env is the whole environment that is added to that of the node.
	Env map[string]string
	// BaseDir is the directory that relative working directories start at.
	BaseDir string
	// Stdout and Stderr take what the program prints; nil: it is thrown away. The
	// executor writes each from one goroutine at a time, but both at once, and
	// no more once Run has returned. A slow writer slows the program down; after
	// an error the program goes on, and Run returns the error with the result.
	Stdout, Stderr io.Writer
	// Grace is the time between SIGTERM and SIGKILL.
	Grace time.Duration
	// Lease bounds the attempt; nil: nothing does.
	Lease *Lease
	// GPUs are the indices of the GPUs that the attempt gets. Empty and not nil:
	// it gets none, and is to see none. Nil: nothing is said, it sees what there is.
	GPUs []int32
	// NUMANode is the NUMA node that the attempt is bound to; nil: none. With
	// NUMAOptional, where it cannot be bound it runs unbound.
	NUMANode     *int32
	NUMAOptional bool
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
	// CPUTime is the processor time of the program and its children.
	CPUTime time.Duration
	// PeakMemory is the largest resident set of one of its processes, in bytes; 0: not known.
	PeakMemory int64
}

// StartError says that an attempt could not start through a fault of its task.
type StartError struct {
	// ExitCode is what a shell would exit with: 127 for a command that is not
	// found, 126 for one that cannot be run.
	ExitCode int
	Err      error
}

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// AsStartError returns the StartError in err's chain, or nil.
func AsStartError(err error) *StartError {
	if s, ok := errors.AsType[*StartError](err); ok {
		return s
	}
	return nil
}
