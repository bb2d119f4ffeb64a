package shell

import (
	"cmp"
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

// Mechanism is a way to find the processes of an attempt.
type Mechanism string

// The mechanisms, as explained in the package comment.
const (
	// Auto selects the best mechanism that works here.
	Auto Mechanism = ""
	// Cgroup needs Linux 5.14 and permission to create cgroup2 directories.
	Cgroup Mechanism = "cgroup"
	// EnvMarker needs Linux with /proc. It makes the whole process a subreaper.
	EnvMarker Mechanism = "mark"
	// Group works on every Unix.
	Group Mechanism = "group"
)

// Options configures an Executor.
type Options struct {
	// Mechanism selects a mechanism. New fails if it does not work here, except for Auto.
	Mechanism Mechanism
	// Watchdog starts a process with the first attempt. It ends all attempts if this process is killed, and each by the
	// end of its lease if this process is held up. It requires that main calls ServeIfAsked before anything else. Linux
	// only; ignored elsewhere.
	Watchdog bool
	// Environ is the node's environment as KEY=value, or nil for that of this process.
	Environ []string
	// Leave makes it possible to leave attempts to a later worker. It requires Watchdog and LeftDir.
	Leave bool
	// LeftDir is the directory for what a later worker with the same LeftDir needs of the attempts that this one leaves, or "" if
	// attempts are not left. Only workers of this user may enter its parent.
	LeftDir string
	// PassEnv names variables in Environ that tasks get in addition to the usual ones, such as PATH and HOME. A name
	// that ends in * matches all names with that prefix. Sandboxed tasks do not get them.
	PassEnv []string
	// IsHidden reports whether a variable of Environ is a secret that tasks must not inherit, whatever PassEnv says,
	// because only tasks that reference it may get it. nil hides none.
	IsHidden func(name string) bool
	// SandboxUsers is the range of user and group ids that sandboxes run as, one for each running sandbox. No other
	// account may have them. The zero value means 65,536 ids from 1,900,000,000, which no distribution assigns to
	// accounts.
	SandboxUsers Users
	// Logger records problems outside of any attempt, or is nil.
	Logger *slog.Logger
}

// Users is a range of user ids.
type Users struct{ First, Count int }

// Executor runs shell tasks. One Executor serves all nodes of a process.
type Executor struct {
	trees   treeFactory
	bounds  *bounds
	users   *users
	forker  *forker.Forker
	guard   *watchdog
	leftDir string
	leaves  bool
	environ []string
	// mpsPipes is the directory that exists while the Multi-Process Service for GPUs runs.
	mpsPipes string
	// shell is the path of sh, or "" if this machine has none.
	shell   string
	null    *os.File
	buffers sync.Pool
	closed  atomic.Bool
	logger  *slog.Logger
	// warn guards the log entry that limits are not enforced.
	warn       sync.Once
	sandboxing sandboxing
	steered    steered
}

var _ executor.Executor = (*Executor)(nil)

// New returns an Executor. The caller calls Close after the last Run has returned.
func New(o Options) (*Executor, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		sh = "" // as in a container image that holds only programs
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	guard := newWatchdog(o.Watchdog, o.Logger)
	leaves := o.Leave && o.LeftDir != "" && canLeaveHere(guard)
	trees, err := newTreeFactory(o.Mechanism, guard, leaves, o.Logger)
	if err != nil {
		null.Close()
		return nil, fmt.Errorf("set up process tracking for shell tasks: %w", err)
	}
	return &Executor{
		trees:    trees,
		bounds:   newBounds(trees),
		users:    newUsers(o.SandboxUsers),
		logger:   o.Logger,
		forker:   forker.New(),
		guard:    guard,
		leftDir:  o.LeftDir,
		leaves:   leaves,
		environ:  filterVariables(o.Environ, slices.Concat(inheritedVariables, o.PassEnv), o.IsHidden),
		mpsPipes: cmp.Or(lookup(o.Environ, mpsPipesVariable), usualMPSPipes),
		shell:    sh,
		null:     null,
		buffers:  sync.Pool{New: func() any { return new(pipes.Chunk) }},
	}, nil
}

// Type returns "shell".
func (e *Executor) Type() string { return v1.TypeShell }

// Capabilities returns what the executor can do beyond Run.
func (e *Executor) Capabilities() executor.Capabilities {
	return executor.Capabilities{Batch: e.batch(), Steer: e, Enter: e.Enter, Leave: e.leaver(), EndLeftover: endLeftover}
}

// Mechanism returns the mechanism in use, never Auto.
func (e *Executor) Mechanism() Mechanism { return e.trees.mechanism() }

// Close ends the watchdog and releases what New created. A second call is a no-op.
func (e *Executor) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.forker.Close()
	return errors.Join(e.trees.close(), e.bounds.close(), e.users.close(), e.guard.close(), e.null.Close())
}
