package shell

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/forker"
	"switchyard/activities/executor/shell/pipes"
	v1 "switchyard/proto/switchyard/v1"
)

// Mechanism is a way to find which processes belong to an attempt.
type Mechanism string

// The mechanisms; the package comment explains them.
const (
	// Auto is the best of the others that works here.
	Auto Mechanism = ""
	// Cgroup needs Linux 5.14 and leave to make cgroup2 directories.
	Cgroup Mechanism = "cgroup"
	// EnvMarker needs Linux with /proc. It makes the whole process a subreaper.
	EnvMarker Mechanism = "mark"
	// Group works on every Unix.
	Group Mechanism = "group"
)

// Options say how an Executor works.
type Options struct {
	// Mechanism asks for one; when it does not work here, New fails. Auto never fails for this.
	Mechanism Mechanism
	// Watchdog starts a process with the first attempt that ends all of them
	// when this process is killed, and each by the end of its lease when this
	// process is held up. To set it, main must call ServeIfAsked
	// before it does anything else. Linux only; ignored elsewhere.
	Watchdog bool
	// Environ is the node's environment, as KEY=value; nil: that of this process.
	Environ []string
	// PassEnv are names of variables in Environ that tasks get beside the usual ones, such as PATH
	// and HOME; one that ends in * stands for all that begin so. Tasks in a sandbox do not get them.
	PassEnv []string
	// IsHidden reports whether no task inherits a variable of Environ, whatever PassEnv says, because it is a secret of
	// those that name it. nil: none is.
	IsHidden func(name string) bool
	// SandboxUsers are the ids of users, and of their groups, that sandboxes run as, one for
	// each that runs; no other account may have them. Zero: 65,536 from 1,900,000,000 on, which no
	// distribution gives to an account.
	SandboxUsers Users
	// Logger takes what goes wrong outside of any attempt; nil: nothing is logged.
	Logger *slog.Logger
}

// Users is a range of user ids.
type Users struct{ First, Count int }

// Executor runs shell tasks. One is enough for all nodes of a process.
type Executor struct {
	trees   treeFactory
	bounds  *bounds
	users   *users
	forker  *forker.Forker
	guard   *watchdog
	environ []string
	shell   string
	null    *os.File
	buffers sync.Pool
	closed  atomic.Bool
	logger  *slog.Logger
	// warn says in the worker's log that there are no limits.
	warn       sync.Once
	sandboxing sandboxing
	steered    steered
}

var _ executor.Executor = (*Executor)(nil)

// New returns an Executor; whoever made it calls Close after the last Run has returned.
func New(o Options) (*Executor, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("find a shell: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	guard := newWatchdog(o.Watchdog, o.Logger)
	trees, err := newTreeFactory(o.Mechanism, guard, o.Logger)
	if err != nil {
		null.Close()
		return nil, fmt.Errorf("contain shell tasks: %w", err)
	}
	return &Executor{
		trees:   trees,
		bounds:  newBounds(trees),
		users:   newUsers(o.SandboxUsers),
		logger:  o.Logger,
		forker:  forker.New(),
		guard:   guard,
		environ: only(o.Environ, slices.Concat(inheritedVariables, o.PassEnv), o.IsHidden),
		shell:   sh,
		null:    null,
		buffers: sync.Pool{New: func() any { return new(pipes.Chunk) }},
	}, nil
}

// Type is "shell".
func (e *Executor) Type() string { return v1.TypeShell }

// Mechanism is the one that is in use, never Auto.
func (e *Executor) Mechanism() Mechanism { return e.trees.mechanism() }

// Close ends the watchdog and removes what New has made. A second call does nothing.
func (e *Executor) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.forker.Close()
	return errors.Join(e.trees.close(), e.bounds.close(), e.users.close(), e.guard.close(), e.null.Close())
}
