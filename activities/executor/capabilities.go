package executor

import (
	"context"
	"errors"
	"io"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Capabilities are what an Executor can do beyond Run. A nil field means that the executor lacks the capability.
type Capabilities struct {
	// Available returns nil if attempts can be started now, or an error that explains to the user why not. It returns at once.
	// If it is nil, attempts can always be started.
	Available func() error

	// Batch begins a batch of attempts, which run one after the other at less cost than separately. The id and the lease apply to
	// all of them and override those in each Attempt. The caller must call Close on the batch.
	Batch func(id string, lease *Lease) (Batch, error)

	// Steer suspends running attempts.
	Steer Steerer

	// Enter returns the inside of the attempt that runs under an id, or ErrNotRunning. The Inside needs no Close: whatever was
	// started in it ends with the context of its call, and at the latest with the attempt.
	Enter func(ctx context.Context, id string) (Inside, error)

	// Capture captures running attempts, and the images they are made of, as environments.
	Capture Capturer

	// Survive finds attempts that outlived their worker. It is set if attempts do so, after a worker that was killed as well as
	// after one that left them: when the cause of ctx is ErrLetGo, Run and Reattach return soon, leave the attempt running, and
	// set Stopped in their Result. A later worker of the node finds the attempt through Survive. Any other cause ends the attempt,
	// as with every Executor. An attempt that has not started yet does not start, whatever the cause. The lease of an attempt
	// that was left is enforced by a process that outlives the worker, not by the executor.
	Survive Survivor

	// Leave is Survive for attempts that outlive only a worker that left them, and not one that was killed. It is set if Survive is
	// not, but attempts can be left.
	Leave Leaver

	// EndLeftover ends what a dead worker has left of the attempt with an id, and returns when it is gone. It is set if attempts
	// may outlive a killed worker, if only for moments.
	EndLeftover func(ctx context.Context, id string) error

	// Restart ends all processes of an attempt, as the end of ctx of its Run does, and starts its program again in the same place
	// with the same files. Run and the log continue. Restart returns when the program runs again, with ErrNotRunning if the
	// attempt has ended, or with a *Refusal. Once begun, a restart completes even if ctx ends; a concurrent Restart waits for it.
	//
	// Restart is set if the executor is lasting: Survive is set, and attempts run until they are stopped, beyond their lease,
	// which bounds only the start.
	Restart func(ctx context.Context, id string) error

	// Recorded notifies the executor that the end of an attempt is in the store, so it may remove what it kept of the attempt. It
	// is called at most once after Run, and not after a Run that let go.
	//
	// Recorded is set if the executor is remote: its attempts run outside the node, where any node that has the executor can
	// continue them. It finds an attempt by its Identity without node and claim. The dispatch with the highest claim owns the
	// attempt; the other dispatches let go of it. Run continues an attempt that exists already. When the cause of ctx is
	// ErrLetGo, Run returns soon, leaves the attempt running, and sets Stopped in its Result. The end of an attempt's lease has
	// the same effect and never ends the attempt itself.
	Recorded func(ctx context.Context, a Attempt) error
}

// Batch is a batch of attempts. Its methods are called by one goroutine at a time.
type Batch interface {
	// Run acts like Executor.Run for the next attempt, and leaves nothing of it behind.
	Run(ctx context.Context, a Attempt, spawned func()) (Result, error)

	// Close ends the batch. An error means that something of it is left on the node.
	Close() error
}

// Steerer suspends running attempts.
type Steerer interface {
	// Pause suspends the attempt that runs under an id. None of its processes continues until Resume is called or the ctx of its
	// Run ends. Pause returns ErrNotRunning if there is no such attempt. Pausing twice is a no-op.
	Pause(ctx context.Context, id string) error
	// Resume continues a suspended attempt. It is a no-op if the attempt is not suspended.
	Resume(ctx context.Context, id string) error
}

// Capturer captures environments. A *Refusal explains why something cannot be captured.
type Capturer interface {
	// Capture writes the files of a running attempt to an archive, without its mounts and its environment variables. It suspends
	// the attempt for as long as necessary. Capture returns ErrNotRunning if no attempt runs under the id.
	Capture(ctx context.Context, id string, to io.Writer) (Captured, error)
	// CaptureImage writes an image to an archive. The node pulls the image if it lacks it, with the registry credentials named by
	// registryAuth unless that is empty. say receives the progress, one line a call.
	CaptureImage(ctx context.Context, image, registryAuth string, to io.Writer, say func(string)) (Captured, error)
}

// Survivor finds attempts that outlived their worker.
type Survivor interface {
	// Survivors returns the attempts that earlier workers left on this node, including those that have ended since. The caller
	// adopts or removes each of them.
	Survivors(ctx context.Context, node string) ([]Leftover, error)
	// Reattach acts like Run for an attempt that has already started. The attempt's writers receive everything it has ever
	// printed, from the start, unless Leftover.Held is set. Reattach returns ErrNotRunning if nothing of the attempt is left.
	Reattach(ctx context.Context, a Attempt) (Result, error)
	// Remove ends what is left of an attempt and returns when it is gone. If the engine that runs attempts does not
	// remove it, Remove kills the processes of the Workload, as far as they are on this machine, and returns an error.
	Remove(ctx context.Context, l Leftover) error
}

// Leaver is a Survivor of attempts that outlive only a worker that left them.
type Leaver interface {
	Survivor
	// CanLeave returns nil if the attempt that runs under an id would be left if the cause of its ctx were ErrLetGo. Otherwise the
	// error says why not, in a few words.
	CanLeave(id string) error
}

// Leftover is an attempt that a worker has left on the node.
type Leftover struct {
	// ID is the ID of the Attempt.
	ID       string
	Identity Identity
	// Running is false if the attempt has ended by itself.
	Running bool
	// StartedAt is when the program started, or zero if it never did.
	StartedAt time.Time
	// Env holds the environment variables with which the program was started, at least those with secrets.
	Env map[string]string
	// Held is what Streams.Held returned when the attempt was left, if its writers receive only what it prints from now on. It is
	// nil if they receive everything from the start.
	Held []byte
	// Workload is what ran the attempt, as its worker reported it. Only Remove reads it; Survivors leaves it nil.
	Workload *v1.Workload
}

// ErrLetGo is the cause with which the caller makes a remote executor leave an attempt to another node, or one that can Survive
// leave it to a later worker of this node.
var ErrLetGo = errors.New("another worker continues the attempt")
