package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/liveness"
	"switchyard/activities/metrics"
	"switchyard/activities/presence"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	"switchyard/activities/taskrunner"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
)

// NodeConfig describes a node. Client, Store, Logger, Name, Machine, Executors
// and ScratchDir are required.
type NodeConfig struct {
	Client *Connection
	Store  *store.Store
	Logger *slog.Logger
	// Name of the node: at most 63 of [a-z0-9.-], unique in the fleet.
	Name         string
	Labels       []string
	Capabilities map[string]string
	// Sessions returns the sessions of agents that are alive on the machine, which each heartbeat makes capabilities; nil:
	// there are none.
	Sessions func(context.Context) []string
	// Clusters returns the clusters of Kubernetes that the node reaches now, which each heartbeat makes capabilities; nil:
	// there are none.
	Clusters func() []string
	// MaxParallel is the most tasks that the node runs at once; 0: its cores, at least 4.
	MaxParallel int
	// Machine is shared by the nodes of one process.
	Machine   *node.Machine
	Executors []executor.Executor
	// WorkDir is where relative working directories start; empty: the process's own.
	WorkDir string
	// ScratchDir is where attempts get their private directories.
	ScratchDir string
	// TempDir is where attempts that end with the worker have their temporary directories; the nodes of a process share
	// it, and nothing else. Empty: in their private directories.
	TempDir string
	// LastingTempDir is the parent of the folder in which the attempts that outlive the worker have theirs; empty: in
	// their private directories.
	LastingTempDir string
	// StateDir is the parent of the folder in which the node finds again what it has left;
	// empty: one of this user in the folder for temporary files.
	StateDir string
	// Withheld is what the node cannot offer although something of it is there, with the reason and the remedy, for people.
	Withheld map[string]string
	// Guard is called with the state of the node before the first attempt starts that would
	// outlive this worker: from then on something outside of this process is to call
	// taskrunner.EndOverdue. nil: nothing does.
	Guard func(dir string)
	// Secrets has the values of the secrets of tasks; nil: tasks that ask for any fail.
	Secrets taskrunner.SecretSource
	// SharedDir is given to tasks as SWITCHYARD_SHARED_DIR; empty: none.
	SharedDir string
	// MaxOutput is how much output of an attempt its log keeps, in bytes; 0: 256 MiB.
	MaxOutput int64
	// Metrics counts attempts; nil: nothing does.
	Metrics *metrics.Metrics
	// MetricsURL is where the process serves them, for people; empty: nowhere.
	MetricsURL string
	// OfflineAfter is how long the node may be silent before it counts as lost; 0: 15 s.
	OfflineAfter time.Duration
	// EndGrace, when it is closed, kills attempts that have been asked to end, now or later, without the usual grace
	// period. It may be nil.
	EndGrace <-chan struct{}

	// Gaming are the rules by which the machine counts as one on which a user plays; nil: node.DefaultGamingRules.
	Gaming *node.GamingRules
	// Containers is what the containers of tasks may do on the node; nil: nothing that could harm it.
	Containers *v1.ContainerPolicy

	// Others than those of this machine in tests.
	lockDir   string
	machineID string
}

const (
	// Time between the heartbeats of an attempt, where the server pushes a cancel
	// to the worker, and where the answer to a heartbeat must carry it.
	pushedBeat = 5 * time.Second
	polledBeat = time.Second
	// stopReason is why a node that stops hands its attempts back.
	stopReason = "its worker stops"
	// nodeStopTimeout is how long a stopping node waits for its attempts, which are
	// then being ended: their grace, and some time to report.
	nodeStopTimeout = 20 * time.Second
	// drainGrace is how long attempts whose drain is over may take to end: the time
	// between SIGTERM and SIGKILL, and a little more.
	drainGrace = 11 * time.Second
	// detachPatience is how long a stopping node waits for whoever is to take over what
	// it reports attempts between two executions of their runs.
	detachPatience = 3 * time.Second
	// defaultOfflineAfter is how long a node may be silent before it counts as lost;
	// minOfflineAfter is what beats can keep.
	defaultOfflineAfter = 15 * time.Second
	minOfflineAfter     = time.Second
)

// withDefaults fills in what may be left out and says what is missing.
func (c NodeConfig) withDefaults() (NodeConfig, error) {
	switch {
	case c.Client == nil, c.Store == nil, c.Logger == nil, c.Machine == nil, c.ScratchDir == "", len(c.Executors) == 0:
		return c, errors.New("node: Client, Store, Logger, Machine, ScratchDir and Executors are required")
	case c.Name == "" || node.Name(c.Name) != c.Name:
		return c, fmt.Errorf("node name %q: use at most 63 of a-z, 0-9, '.' and '-', with a letter or digit at both ends, such as %s", c.Name, node.Name(c.Name))
	case c.OfflineAfter != 0 && c.OfflineAfter < minOfflineAfter:
		return c, fmt.Errorf("node %s: offline after is %s; it must be at least %s", c.Name, c.OfflineAfter, minOfflineAfter)
	case c.MaxParallel < 0:
		return c, fmt.Errorf("node %s: max parallel is %d; it must be at least 1, or 0 for the default", c.Name, c.MaxParallel)
	}
	if c.MaxParallel == 0 {
		c.MaxParallel = max(int(c.Machine.Total().Cores), 4)
	}
	if c.OfflineAfter == 0 {
		c.OfflineAfter = defaultOfflineAfter
	}
	c.Logger = c.Logger.With("node", c.Name)
	return c, nil
}

// Node is a running node worker.
type Node struct {
	cfg        NodeConfig
	workspaces *workspace.Root
	workers    []worker.Worker
	withheld   map[string]string // why the node does not offer task types, by type; set before it registers
	gpuLane    bool              // is served
	presence   *presence.Presence
	attempts   *taskrunner.Node
	lock       *node.NameLock // nil: there is none on this machine
	registered bool           // set once, before anything else uses the node
	leaving    atomic.Bool
	cancel     context.CancelFunc
	recovered  func(context.Context) // ends what was begun for attempts of an earlier worker
	loops      sync.WaitGroup
	stop       sync.Once

	failed  chan struct{} // closed when the node has lost its name
	failure error         // why; set before failed is closed
}

// StartNode registers a node and starts its worker. It waits for a control
// process to register it, until ctx ends, and for an earlier worker of the name
// that may be dead; it does not block once the node is registered. Drain and then
// Stop end the node.
func StartNode(ctx context.Context, cfg NodeConfig) (_ *Node, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	beat := polledBeat
	if cfg.Client.PushesCancel {
		beat = pushedBeat
	}
	ledger := node.NewLedger(cfg.Machine, cfg.MaxParallel)
	n := &Node{cfg: cfg, workspaces: workspace.NewRoot(cfg.ScratchDir, cfg.TempDir), failed: make(chan struct{}), cancel: func() {}, recovered: func(context.Context) {}}
	defer func() {
		if err != nil {
			n.Stop()
			err = fmt.Errorf("start node %s: %w", cfg.Name, err)
		}
	}()
	n.attempts = &taskrunner.Node{
		Name: cfg.Name, Incarnation: uuid.NewString(), Client: cfg.Client, Store: cfg.Store, Room: room{ledger},
		Executors: map[string]executor.Executor{}, BaseDir: cfg.WorkDir, Workspaces: n.workspaces,
		Fleet: cfg.Client.Fleet, Secrets: cfg.Secrets, SharedDir: cfg.SharedDir, MaxOutput: cfg.MaxOutput, HasGPUs: n.hasGPUs, BeatInterval: beat, EndGrace: cfg.EndGrace, Metrics: cfg.Metrics, Logger: cfg.Logger,
	}
	n.attempts.Wanted = liveness.Attempts{Client: cfg.Client.Client}.IsClaimed
	for _, e := range cfg.Executors {
		n.attempts.Executors[e.Type()] = e
	}
	kept := &nodeStore{store: cfg.Store, log: cfg.Logger}
	kept.read(ctx)
	figures, since := snapshotter(cfg, ledger), timestamppb.Now()
	n.presence = presence.NewPresence(presence.PresenceOptions{
		Client: cfg.Client, Name: cfg.Name, Incarnation: n.attempts.Incarnation, Logger: cfg.Logger,
		Snapshot: func(ctx context.Context) *v1.NodeSnapshot {
			s := figures(ctx)
			s.Draining = n.leaving.Load()
			s.Executors, s.Withheld = n.offered(s.GetExecutors()), n.allWithheld()
			if id := kept.id.Load(); id != nil {
				s.Store = *id
			}
			if problem := kept.problem.Load(); problem != nil {
				s.StoreProblem = *problem
			}
			s.Spooled = int64(cfg.Store.Spooled())
			s.Claims = n.attempts.ClaimFigures()
			s.Claims.Since = since
			return s
		},
	})
	if err = n.lockName(ctx); err != nil {
		return nil, err
	}
	n.recover(ctx)
	// Nothing is taken up before the node is registered under this incarnation.
	if err = n.join(ctx); err != nil {
		return nil, err
	}
	if err = n.serve(); err != nil {
		return nil, err
	}
	var loopCtx context.Context
	loopCtx, n.cancel = context.WithCancel(context.Background())
	n.loops.Go(func() { n.stay(loopCtx) })
	n.loops.Go(func() { kept.watch(loopCtx, registry.New(cfg.Client)) })
	return n, nil
}

// recover continues with the attempts of an earlier worker of the name. Where no lock says
// that it is dead, they may be a live one's.
func (n *Node) recover(ctx context.Context) {
	dir, err := n.openFolders()
	if err != nil {
		n.withholdLasting(err)
		return
	}
	n.attempts.StateDir = dir
	if n.cfg.Guard != nil {
		n.attempts.Guard = func() { n.cfg.Guard(dir) }
	}
	n.recovered = n.attempts.Recover(ctx)
}

// Enter returns the inside of an attempt of the node, as taskrunner.Node.Enter does.
func (n *Node) Enter(ctx context.Context, h *v1.SessionHeader) (executor.Inside, func(), error) {
	return n.attempts.Enter(ctx, h)
}

// Incarnation returns the identity of this start of the node's worker.
func (n *Node) Incarnation() string { return n.attempts.Incarnation }

// Stop ends the node: waiting attempts are handed back, running ones are stopped
// and handed back, lasting ones are left to a later worker, and the node leaves the fleet. A second Stop does nothing.
func (n *Node) Stop() {
	n.stop.Do(func() {
		n.leaving.Store(true)
		n.cancel()
		n.loops.Wait()
		// The attempts first, while the node still counts as alive.
		n.attempts.BeginDrain(time.Now(), stopReason)
		n.attempts.LetGo(stopReason)
		// Those that run on between two executions of their runs are about to be taken over.
		ctx, cancel := context.WithTimeout(context.Background(), detachPatience)
		n.attempts.AwaitDetached(ctx)
		cancel()
		for _, w := range slices.Backward(n.workers) {
			w.Stop()
		}
		// Of the others the workers have waited for the end.
		ctx, cancel = context.WithTimeout(context.Background(), nodeStopTimeout)
		n.attempts.AwaitEnds(ctx)
		n.recovered(ctx)
		cancel()
		n.leave()
		if err := n.workspaces.Close(); err != nil {
			n.cfg.Logger.Warn("a private directory was not removed", "error", err)
		}
		if err := n.attempts.CloseState(); err != nil {
			n.cfg.Logger.Warn("a private directory was not removed", "error", err)
		}
		if n.lock != nil {
			if err := n.lock.Release(); err != nil {
				n.cfg.Logger.Warn("the lock for the node's name was not given back", "error", err)
			}
		}
	})
}

// Drain takes the node out of service before its Stop: attempts that wait are handed
// back at once, running ones may finish for as long as patience lasts, or until ctx
// ends. It returns when none is left, or when those that are have had the time to be
// stopped. None spends an attempt. Without patience it does nothing.
func (n *Node) Drain(ctx context.Context, patience time.Duration) {
	if patience <= 0 || ctx.Err() != nil {
		return
	}
	n.leaving.Store(true)
	n.presence.Hurry()
	n.attempts.BeginDrain(time.Now().Add(patience), stopReason)
	ctx, cancel := context.WithTimeout(ctx, patience+drainGrace)
	defer cancel()
	if n.attempts.AwaitQuiet(ctx) != nil {
		n.cfg.Logger.Warn("the node stops with attempts that have not finished; they are moved")
	}
}

// Failed returns a channel that is closed when the node cannot continue, because
// another worker has taken its name; Err says so then. It is still to be stopped.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err is why the node has failed; nil before that.
func (n *Node) Err() error {
	select {
	case <-n.failed:
		return n.failure
	default:
		return nil
	}
}

// available are the task types of executors that can run something now, sorted.
func available(executors []executor.Executor) []string {
	var types []string
	for _, e := range executors {
		if a, ok := e.(executor.Available); !ok || a.Available() == nil {
			types = append(types, e.Type())
		}
	}
	slices.Sort(types)
	return types
}

// withFound returns the capabilities of a node with those of the sessions that are alive and the clusters that it reaches.
func withFound(ctx context.Context, cfg NodeConfig) map[string]string {
	all := maps.Clone(cfg.Capabilities)
	if all == nil {
		all = map[string]string{}
	}
	if cfg.Sessions != nil {
		for _, id := range cfg.Sessions(ctx) {
			all[v1.SessionCapability(id)] = "true"
		}
	}
	if cfg.Clusters != nil {
		for _, name := range cfg.Clusters() {
			all[v1.ClusterCapability(name)] = "true"
		}
	}
	return all
}

// snapshotter returns what takes the node's figures for its heartbeat.
func snapshotter(cfg NodeConfig, ledger *node.Ledger) func(context.Context) *v1.NodeSnapshot {
	dir := cfg.WorkDir
	if dir == "" {
		dir = "."
	}
	probe := node.NewProbe(node.ProbeOptions{Dir: dir, Machine: cfg.Machine, Labels: cfg.Labels, Gaming: cfg.Gaming, Logger: cfg.Logger})
	machine := cmp.Or(cfg.machineID, machineID())
	return func(ctx context.Context) *v1.NodeSnapshot {
		s := probe.Snapshot(ctx)
		s.Capabilities = withFound(ctx, cfg)
		s.Executors = available(cfg.Executors)
		s.MaxParallel = int32(cfg.MaxParallel)
		s.Machine = machine
		s.MetricsUrl = cfg.MetricsURL
		s.Containers = cfg.Containers
		s.Running = running(ledger)
		reserved := cfg.Machine.Reserved()
		s.ReservedCores, s.ReservedMemoryMb = reserved.Cores, reserved.MemoryMB
		return s
	}
}
