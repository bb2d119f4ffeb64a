package qemu

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/qemu/disk"
	v1 "switchyard/proto/switchyard/v1"
)

// Options configure an Executor.
type Options struct {
	// Dir is the private folder for the machines of this process's nodes. The first machine creates it. Its path must be short: socket paths below it
	// are limited to 107 bytes.
	Dir string
	// Images provides the base images of machine disks.
	Images Images
	// Program is the result of Find.
	Program Program
	// Logger receives errors outside of any attempt. A nil Logger discards them.
	Logger *slog.Logger
}

// Images provides the base images of machine disks; *disk.Images implements it. It is safe for concurrent use.
type Images interface {
	// Ensure returns an image, which it fetches if the node does not have it. say receives lines of progress. A
	// *executor.StartError means that the task is at fault.
	Ensure(ctx context.Context, image string, say func(string)) (disk.Base, error)
}

// Executor runs virtual machines. One Executor serves all nodes of a process.
type Executor struct {
	opts   Options
	logger *slog.Logger
	// bootPatience is how long a session waits for a booting machine.
	bootPatience time.Duration

	mu sync.Mutex
	// running maps attempt ids to started machines; starting holds the ids of attempts that are starting.
	running  map[string]*machine
	starting map[string]bool
}

var _ executor.Executor = (*Executor)(nil)

// New returns an Executor of virtual machines.
func New(o Options) (*Executor, error) {
	if err := checkSocketPaths(o.Dir); err != nil {
		return nil, err
	}
	if o.Images == nil {
		return nil, errors.New("Options.Images is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Executor{opts: o, logger: o.Logger, bootPatience: bootPatience, running: map[string]*machine{}, starting: map[string]bool{}}, nil
}

// Type returns v1.TypeVPS.
func (*Executor) Type() string { return v1.TypeVPS }

// Capabilities returns what the executor can do beyond Run.
func (e *Executor) Capabilities() executor.Capabilities {
	return executor.Capabilities{Steer: e, Enter: e.Enter, Capture: e, Survive: e, Restart: e.Restart}
}

// Close does nothing, because machines outlive the worker.
func (*Executor) Close() error { return nil }

// find returns the machine of a running attempt, or nil.
func (e *Executor) find(id string) *machine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[id]
}

// isOwn reports whether this process runs or is starting an attempt.
func (e *Executor) isOwn(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[id] != nil || e.starting[id]
}
