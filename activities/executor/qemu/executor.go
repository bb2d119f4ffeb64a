package qemu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/qemu/disk"
	v1 "switchyard/proto/switchyard/v1"
)

// Options say how an Executor works.
type Options struct {
	// Dir is the private folder of the machines of this process's nodes. Its path is short: the paths of sockets below it have
	// 107 bytes at most.
	Dir string
	// Images are what the disks of machines begin with.
	Images Images
	// Program is what Find has returned.
	Program Program
	// Logger takes what goes wrong outside of any attempt; nil: nothing is logged.
	Logger *slog.Logger
}

// Images are what the disks of machines begin with, such as *disk.Images. It is safe for concurrent use.
type Images interface {
	// Ensure returns an image, which it fetches if the node does not have it. say takes the progress, a line each. A
	// *executor.StartError is a fault of the task.
	Ensure(ctx context.Context, image string, say func(string)) (disk.Base, error)
}

// Executor runs virtual machines. One is enough for all nodes of a process.
type Executor struct {
	opts   Options
	logger *slog.Logger
	// bootPatience is how long a session waits for a machine that boots.
	bootPatience time.Duration

	mu sync.Mutex
	// running are the attempts whose machine has started, by their ids; starting are those that are being started.
	running  map[string]*machine
	starting map[string]bool
}

var (
	_ executor.Lasting   = (*Executor)(nil)
	_ executor.Steerer   = (*Executor)(nil)
	_ executor.Enterer   = (*Executor)(nil)
	_ executor.Capturer  = (*Executor)(nil)
	_ executor.Available = (*Executor)(nil)
)

// New returns an Executor of virtual machines.
func New(o Options) (*Executor, error) {
	if err := checkSocketPaths(o.Dir); err != nil {
		return nil, err
	}
	if o.Images == nil {
		return nil, errors.New("virtual machines need images")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of virtual machines: %w", err)
	}
	return &Executor{opts: o, logger: o.Logger, bootPatience: bootPatience, running: map[string]*machine{}, starting: map[string]bool{}}, nil
}

// Type returns v1.TypeVPS.
func (*Executor) Type() string { return v1.TypeVPS }

// Available returns nil: there is no executor without QEMU.
func (*Executor) Available() error { return nil }

// Close does nothing: machines outlive the worker.
func (*Executor) Close() error { return nil }

// find returns the attempt that runs under an id; nil: none does.
func (e *Executor) find(id string) *machine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[id]
}

// isOwn reports whether this process runs an attempt, or is starting it.
func (e *Executor) isOwn(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running[id] != nil || e.starting[id]
}
