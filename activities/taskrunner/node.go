package taskrunner

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/artifacts"
	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/metrics"
	"switchyard/activities/results"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// defaultStartTimeout is how long an accepted attempt may wait for room or anything else before it is handed back.
const defaultStartTimeout = 30 * time.Second

// defaultRecordTimeout is how long the report of a completed attempt waits for its record, if it can do without one.
const defaultRecordTimeout = 10 * time.Second

// Node holds the activities of one machine. It is safe for concurrent use.
type Node struct {
	Name string
	// Incarnation identifies this start of the worker. An attempt that was placed on another incarnation is handed back.
	// If empty, attempts are not checked.
	Incarnation string
	// Fleet distinguishes nodes with the same name in different fleets.
	Fleet     string
	Client    client.Client
	Store     *store.Store
	Room      Room
	Executors map[string]executor.Executor // by task type
	Folders   Folders
	State     State
	Timing    Timing
	// EndGrace, when closed, cuts the time between SIGTERM and SIGKILL short. It may be nil.
	EndGrace <-chan struct{}
	// MaxOutput is how much output of an attempt its log keeps, in bytes. 0 means the default of package logs.
	MaxOutput int64
	// Secrets resolves the secrets of tasks. If nil, tasks that ask for a secret fail.
	Secrets SecretSource
	// Host is the address under which other nodes reach this one.
	Host string
	// GPUs returns the names of the machine's GPUs by index, as Binding.GPUs has them. If there are any, tasks without GPUs of
	// their own see none. The answer may change while the node runs. A nil function means no GPUs.
	GPUs func() map[int32]string
	// HasNUMA reports whether the machine has several NUMA nodes. If it has not, attempts on its only one are not bound,
	// for which the machine may lack the tools. A nil function means that it has.
	HasNUMA func() bool
	// Wanted reports whether the run of an attempt waits for this dispatch. The node calls it for lasting attempts that
	// no activity waits for. If nil, all are wanted.
	Wanted func(context.Context, executor.Identity) (bool, error)
	// IsGenerationOpen reports whether the generation of a run is open that an identity names by run, chain and generation.
	IsGenerationOpen func(context.Context, executor.Identity) (bool, error)
	// Metrics counts attempts. If nil, they are not counted.
	Metrics *metrics.Metrics
	Logger  *slog.Logger

	// Artifacts saves and loads the artifacts of tasks.
	Artifacts *artifacts.Library

	attempts  attempts
	reserved  reservedPlaces
	lists     results.ListCache
	templates templates
	clones    clones
	recovery  atomic.Pointer[recovery] // nil if there is nothing to recover
	// fixedLeases is used once, to log that the server does not raise heartbeat time-outs.
	fixedLeases sync.Once
}

// Folders are the directories of a node that its tasks use.
type Folders struct {
	// BaseDir is the base of relative working directories.
	BaseDir string
	// SharedDir is passed to tasks as SWITCHYARD_SHARED_DIR, unless it is empty.
	SharedDir string
	// Workspaces is the root of the attempts' private directories.
	Workspaces *workspace.Root
	// Runs holds the folders that tasks of a run share, an absolute path.
	Runs string
}

// Timing holds the times of a node's attempts.
type Timing struct {
	// BeatInterval is the longest time between the heartbeats of an attempt. At least five heartbeats fit into the
	// heartbeat time-out. 0 means exactly five.
	BeatInterval time.Duration
	// StartTimeout is how long an attempt may wait for its start. 0 means 30 s.
	StartTimeout time.Duration
	// WantedInterval is the approximate time between two calls of Wanted for an attempt. 0 means 1 min.
	WantedInterval time.Duration
	// RecordTimeout is how long the report of a completed attempt waits for its record, if it can do without one. 0 means
	// 10 s.
	RecordTimeout time.Duration
}

func (t *Timing) recordTimeout() time.Duration { return cmp.Or(t.RecordTimeout, defaultRecordTimeout) }

func (t *Timing) startTimeout() time.Duration { return cmp.Or(t.StartTimeout, defaultStartTimeout) }

// Room hands out places on a node. Acquire waits until the node has everything that the attempt needs, including GPUs and
// the NUMA node. It fails when ctx ends or if the node can never have room for the attempt. The caller gives the place
// back by calling release.
type Room interface {
	Acquire(ctx context.Context, req *historyv1.ExecuteRequest) (release func(), err error)
	// Restore takes the place of an attempt that has been running since before this process started, even if there is no
	// room for it. started is when its program started, or zero if unknown.
	Restore(req *historyv1.ExecuteRequest, started time.Time) (release func(), err error)
}

// noteFixedLeases logs, once, that the server does not raise heartbeat time-outs.
func (n *Node) noteFixedLeases() {
	n.fixedLeases.Do(func() {
		n.Logger.Warn("leases do not grow: the server does not raise the heartbeat time-out of running attempts", "hint", "it must allow UpdateActivityOptions; longer outages then end old attempts, too")
	})
}

// capabilities returns what the executor of a type can do. It returns none if the node does not have the executor.
func (n *Node) capabilities(taskType string) executor.Capabilities {
	if exec := n.Executors[taskType]; exec != nil {
		return exec.Capabilities()
	}
	return executor.Capabilities{}
}

// survivor returns the capability Survive of a type if its attempts outlive the worker on this node, even one that is killed, else nil.
func (n *Node) survivor(taskType string) executor.Survivor {
	if n.State.Dir == "" {
		return nil
	}
	return n.capabilities(taskType).Survive
}

// adopter returns the capability with which the node continues attempts of a type that an earlier worker has left, or nil.
func (n *Node) adopter(taskType string) executor.Survivor {
	if s := n.survivor(taskType); s != nil {
		return s
	}
	if l := n.leaver(taskType); l != nil {
		return l
	}
	return nil
}

// leaver returns the capability Leave of a type if its attempts outlive a worker that leaves them on this node, else nil.
func (n *Node) leaver(taskType string) executor.Leaver {
	if n.State.Dir == "" {
		return nil
	}
	return n.capabilities(taskType).Leave
}
