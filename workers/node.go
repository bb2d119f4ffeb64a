package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/artifacts"
	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/gatewayclient"
	"switchyard/activities/liveness"
	"switchyard/activities/metrics"
	"switchyard/activities/presence"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	"switchyard/activities/taskrunner"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
)

// NodeConfig configures a node. Client, Store, Logger, Name, Machine, Executors and ScratchDir are required.
type NodeConfig struct {
	Client *Connection
	Store  *store.Store
	// Gateways is the connection of the process to the gateways of the fleet. It may be nil.
	Gateways *gatewayclient.Conn
	Logger   *slog.Logger
	// Name is unique in the fleet and has at most 63 of [a-z0-9.-].
	Name         string
	Labels       []string
	Capabilities map[string]string
	// Terms are the terms on which the node takes tasks, unless others are set at run time.
	Terms *v1.NodeTerms
	// GamingTimeout is how long attempts may continue once a user plays on the machine, if by the terms the node drains then.
	GamingTimeout time.Duration
	// Sessions returns the live agent sessions on the machine, which each heartbeat reports as capabilities. It may be
	// nil.
	Sessions func(context.Context) []string
	// Clusters returns the Kubernetes clusters that the node can currently reach, which each heartbeat reports as
	// capabilities. It may be nil.
	Clusters func() []string
	// MaxParallel is the most tasks that the node runs at once. 0 means its number of cores, but at least 4.
	MaxParallel int
	// Machine is shared by the nodes of one process.
	Machine   *node.Machine
	Executors []executor.Executor
	// WorkDir is the base of relative working directories. "" means the process's own working directory.
	WorkDir string
	// ArtifactCache bounds the chunks of artifacts that the node keeps for later tasks, in bytes. 0 means none.
	ArtifactCache int64
	// ScratchDir is the parent of the private directories of attempts.
	ScratchDir string
	// TempDir is the parent of the temporary directories of attempts that end with the worker. Only the nodes of one
	// process share it. "" means inside their private directories.
	TempDir string
	// LastingTempDir is the parent of the folder with the temporary directories of attempts that outlive the worker. ""
	// means inside their private directories.
	LastingTempDir string
	// Support returns what the settings of the worker and the programs of the machine let tasks use, which each heartbeat
	// reports. nil means that the node does not report it.
	Support func() *v1.TaskSupport
	// StateDir is the parent of the folder with the state that a restarted node recovers. "" means one in the state
	// folder of this machine.
	StateDir string
	// Withheld maps what the node cannot offer, although a part of it is installed, to the reason and the remedy, for
	// people.
	Withheld map[string]string
	// Guard is called with the node's state folder before the first attempt starts or continues that may outlive this
	// worker. From then on a taskrunner.Keeper outside this process enforces the leases. nil means that nothing does.
	Guard func(dir string) error
	// KeepOnStop makes Drain and Stop leave running attempts to the next worker of the node, where a keeper enforces their
	// leases. The node is then restarting, instead of leaving the fleet.
	KeepOnStop bool
	// Secrets holds the values of secrets. If it is nil, tasks that ask for secrets fail.
	Secrets taskrunner.SecretSource
	// SharedDir is passed to tasks as SWITCHYARD_SHARED_DIR. "" means none.
	SharedDir string
	// Host is the address under which other nodes reach the machine. "" means the one from which it reaches the server.
	Host string
	// MaxOutput is the most output of an attempt that its log keeps, in bytes. 0 means 256 MiB.
	MaxOutput int64
	// Metrics counts attempts. It may be nil.
	Metrics *metrics.Metrics
	// MetricsURL is where the process serves the metrics, for people. "" means nowhere.
	MetricsURL string
	// OfflineAfter is how long the node may be silent before it counts as lost. 0 means 15 s.
	OfflineAfter time.Duration
	// EndGrace, once closed, kills attempts that are asked to end, now or later, without the usual grace period. It may
	// be nil.
	EndGrace <-chan struct{}

	// Gaming holds the rules that detect that a user plays a game on the machine. nil means node.DefaultGamingRules.
	Gaming *node.GamingRules
	// Containers sets what containers may do on the node. nil allows nothing that could harm it.
	Containers *v1.ContainerPolicy

	lockDir string // replaces the machine's folder in tests
}

const (
	// pushedBeat is the interval between heartbeats of an attempt if the server pushes a cancel to the worker, and
	// polledBeat the interval if the reply to a heartbeat must carry the cancel.
	pushedBeat = 5 * time.Second
	polledBeat = time.Second
	// stopReason is the reason with which a stopping node hands its attempts back.
	stopReason = "its worker stops"
	// nodeStopTimeout is how long a stopping node waits for its attempts, which are being ended: their usual grace period and
	// some time to report.
	nodeStopTimeout = 20 * time.Second
	// drainGrace is how long attempts may take to end after their drain deadline: their usual grace period and a little
	// more.
	drainGrace = 11 * time.Second
	// detachPatience is how long a stopping node waits until the next executions of runs have taken over their detached
	// attempts.
	detachPatience = 3 * time.Second
	// defaultOfflineAfter is how long a node may be silent before it counts as lost. minOfflineAfter is the shortest
	// value that heartbeats can meet.
	defaultOfflineAfter = 15 * time.Second
	minOfflineAfter     = time.Second
)

// withDefaults returns the configuration with defaults for unset fields, or an error if a required field is missing.
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
	withheld   map[string]string // reasons why the node does not offer task types, by type; set before it registers
	gpuLane    bool              // the GPU lane is served
	presence   *presence.Presence
	attempts   *taskrunner.Node
	terms      terms
	lock       *node.NameLock // nil if the machine has no lock
	registered bool           // set once, before anything else uses the node
	unanswered bool           // the server may have a registration that it has not answered; set like registered
	silenced   sync.Once      // a stopping node says once that Temporal does not answer
	leaving    atomic.Bool
	cancel     context.CancelFunc
	recovered  func(context.Context) // ends what an earlier worker began for its attempts
	loops      sync.WaitGroup
	stop       sync.Once

	failed  chan struct{} // closed when the node has lost its name
	failure error         // reason for failed; set before failed is closed
}

// StartNode registers a node and starts its worker. It waits, until ctx ends, for a control process that registers the
// node, and for an earlier worker of the same name that may be dead. It returns once the node is registered. Drain and
// then Stop end the node.
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
	room := newRoom(ledger)
	n := &Node{cfg: cfg, terms: terms{flags: cfg.Terms, gamingTimeout: cfg.GamingTimeout}, workspaces: workspace.NewRoot(cfg.ScratchDir, cfg.TempDir), failed: make(chan struct{}), cancel: func() {}, recovered: func(context.Context) {}}
	defer func() {
		if err != nil {
			n.Stop()
			err = fmt.Errorf("start node %s: %w", cfg.Name, err)
		}
	}()
	n.attempts = &taskrunner.Node{
		Name: cfg.Name, Incarnation: uuid.NewString(), Client: cfg.Client, Store: cfg.Store, Room: room,
		Executors: map[string]executor.Executor{},
		Folders:   taskrunner.Folders{BaseDir: cfg.WorkDir, SharedDir: cfg.SharedDir, Workspaces: n.workspaces},
		Fleet:     cfg.Client.Fleet, Secrets: cfg.Secrets, MaxOutput: cfg.MaxOutput, Host: cmp.Or(cfg.Host, ownHost(cfg.Client.Address)), GPUs: n.gpuNames, HasNUMA: n.hasNUMA, Timing: taskrunner.Timing{BeatInterval: beat}, EndGrace: cfg.EndGrace, Metrics: cfg.Metrics, Logger: cfg.Logger,
	}
	known := liveness.Attempts{Client: cfg.Client.Client, CheckFleet: cfg.Client.CheckFleet}
	n.attempts.Wanted, n.attempts.IsGenerationOpen = known.IsClaimed, known.IsGenerationOpen
	for _, e := range cfg.Executors {
		n.attempts.Executors[e.Type()] = e
	}
	kept := &nodeStore{store: cfg.Store, gateways: cfg.Gateways, log: cfg.Logger, changed: func() {
		if n.presence != nil {
			n.presence.Hurry()
		}
	}}
	kept.update(ctx)
	figures, since := snapshotter(cfg, room), timestamppb.Now()
	n.presence = presence.NewPresence(presence.PresenceOptions{
		Client: cfg.Client, Name: cfg.Name, Incarnation: n.attempts.Incarnation, Logger: cfg.Logger,
		Snapshot: func(ctx context.Context) *v1.NodeSnapshot {
			s := figures(ctx)
			n.terms.apply(s, n.attempts)
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
	n.openState()
	if n.attempts.Folders.Runs, err = filepath.Abs(filepath.Join(n.dir(), "runs")); err != nil {
		return nil, err
	}
	if err = n.openArtifacts(); err != nil {
		return nil, err
	}
	// The node touches nothing that another worker of its name may still use before it is registered under this incarnation.
	record, err := n.join(ctx)
	if err != nil {
		return nil, err
	}
	n.recover(ctx)
	n.obey(record)
	if err = n.serve(); err != nil {
		return nil, err
	}
	var loopCtx context.Context
	loopCtx, n.cancel = context.WithCancel(context.Background())
	n.loops.Go(func() { n.stay(loopCtx) })
	n.loops.Go(func() { n.attempts.SweepRunFolders(loopCtx) })
	n.loops.Go(func() { kept.watch(loopCtx, registry.New(cfg.Client)) })
	return n, nil
}

// dir returns the folder for what the next worker of the node is to find, if it keeps a state.
func (n *Node) dir() string { return cmp.Or(n.attempts.State.Dir, n.cfg.ScratchDir) }

// openArtifacts prepares the artifacts of tasks and their cache, which the next worker of the node finds if it keeps a state.
func (n *Node) openArtifacts() error {
	n.attempts.Artifacts = &artifacts.Library{Store: n.cfg.Store}
	if n.cfg.ArtifactCache == 0 {
		return nil
	}
	cache, err := artifacts.OpenCache(filepath.Join(n.dir(), "artifacts"), n.cfg.ArtifactCache)
	n.attempts.Artifacts.Cache = cache
	return err
}

// openState prepares the folder through which attempts outlive this worker. Without a lock, another worker may use it.
func (n *Node) openState() {
	dir, err := n.openFolders()
	if err != nil {
		n.attempts.State.Problem = err
		n.withholdSurvivors(err)
		return
	}
	n.attempts.State.Dir, n.attempts.State.Keeps = dir, n.cfg.KeepOnStop
	if n.cfg.Guard != nil {
		n.attempts.State.Guard = func() error { return n.cfg.Guard(dir) }
	}
}

// recover continues the attempts of earlier workers of the same name. Each of these workers has ended or has lost its
// registration. The wait for answers is bounded so that the first heartbeat of the node is not late.
func (n *Node) recover(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.OfflineAfter/3)
	defer cancel()
	n.recovered = n.attempts.Recover(ctx)
}

// Enter returns the inside interface of an attempt on the node, as taskrunner.Node.Enter does.
func (n *Node) Enter(ctx context.Context, h *v1.SessionHeader) (executor.Inside, func(), error) {
	return n.attempts.Enter(ctx, h)
}

// Incarnation returns the ID of this start of the node's worker.
func (n *Node) Incarnation() string { return n.attempts.Incarnation }

// Stop ends the node. It hands waiting attempts back, leaves lasting ones, and those to be kept, to a later worker, and
// stops the others and hands them back. Then the node leaves the fleet, or restarts if it is to be kept. A second Stop is
// a no-op.
func (n *Node) Stop() {
	n.stop.Do(func() {
		n.leaving.Store(true)
		n.cancel()
		n.loops.Wait()
		unwatch := n.watchSilence()
		// The attempts end first, while the node still counts as alive.
		n.keepAttempts()
		n.attempts.BeginDrain(time.Now(), stopReason)
		// Detached attempts between two executions of their runs are about to be taken over.
		ctx, cancel := context.WithTimeout(context.Background(), detachPatience)
		if !n.isCutOff() {
			n.attempts.AwaitDetached(ctx)
		}
		cancel()
		n.attempts.LetGo(stopReason)
		restarts := n.restart()
		unwatch()
		workersStopped := n.stopWorkers()
		n.awaitAnswer(workersStopped)
		// If the workers have stopped, they have already waited for the other attempts.
		ctx, cancel = context.WithTimeout(context.Background(), nodeStopTimeout+n.ExtraGrace())
		n.attempts.AwaitEnds(ctx)
		n.recovered(ctx)
		cancel()
		select {
		case <-workersStopped:
		case <-time.After(cutOffTimeout):
		}
		defer n.unlock(!restarts && n.leave())
		if err := n.workspaces.Close(); err != nil {
			n.cfg.Logger.Warn("a private directory was not removed", "error", err)
		}
		if err := n.attempts.State.Close(); err != nil {
			n.cfg.Logger.Warn("a private directory was not removed", "error", err)
		}
	})
}

// Drain takes the node out of service before Stop. It hands waiting attempts back at once; running ones may finish
// until patience has passed or ctx ends. It returns when none is left, or when the remaining ones have had time to
// stop. No task loses an attempt of its retry budget. Drain neither ends nor awaits attempts that Stop leaves to a later
// worker. It is a no-op without patience.
func (n *Node) Drain(ctx context.Context, patience time.Duration) {
	if patience <= 0 || ctx.Err() != nil {
		return
	}
	n.leaving.Store(true)
	defer n.watchSilence()()
	n.presence.Hurry()
	n.keepAttempts()
	n.attempts.BeginDrain(time.Now().Add(patience), stopReason)
	ctx, cancel := context.WithTimeout(ctx, patience+drainGrace+n.ExtraGrace())
	defer cancel()
	await := n.attempts.AwaitQuiet
	if n.isCutOff() { // no attempt is on its way
		await = n.attempts.AwaitIdle
	}
	if await(ctx) != nil {
		n.cfg.Logger.Warn("the node stops with unfinished attempts; they move to other nodes")
	}
}

// ExtraGrace returns how much longer than the usual time one of the running attempts may take to end after its stop signal.
func (n *Node) ExtraGrace() time.Duration { return n.attempts.ExtraGrace() }

// Failed returns a channel that is closed when the node cannot continue because another worker has taken its name. Err
// then returns the reason. The caller must still stop the node.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err returns why the node has failed, or nil if it has not.
func (n *Node) Err() error {
	select {
	case <-n.failed:
		return n.failure
	default:
		return nil
	}
}

// available returns the sorted task types of executors that can currently run something.
func available(executors []executor.Executor) []string {
	var types []string
	for _, e := range executors {
		if isAvailable := e.Capabilities().Available; isAvailable == nil || isAvailable() == nil {
			types = append(types, e.Type())
		}
	}
	slices.Sort(types)
	return types
}

// withFound returns the capabilities of a node, including those for a shared folder, live sessions and reachable clusters.
func withFound(ctx context.Context, cfg NodeConfig) map[string]string {
	all := maps.Clone(cfg.Capabilities)
	if all == nil {
		all = map[string]string{}
	}
	all[v1.ArtifactsCapability], all[v1.WorkspacesCapability], all[v1.GangCapability] = "true", "true", "true"
	if _, err := exec.LookPath("git"); err == nil {
		all[v1.GitCapability] = "true"
	}
	if cfg.SharedDir != "" {
		all[v1.SharedDirCapability] = "true"
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

// snapshotter returns a function that takes a snapshot of the node for its heartbeat.
func snapshotter(cfg NodeConfig, room *room) func(context.Context) *v1.NodeSnapshot {
	dir := cfg.WorkDir
	if dir == "" {
		dir = "."
	}
	probe := node.NewProbe(node.ProbeOptions{Dir: dir, Machine: cfg.Machine, Labels: cfg.Labels, Gaming: cfg.Gaming, Logger: cfg.Logger})
	machine := machineID()
	return func(ctx context.Context) *v1.NodeSnapshot {
		s := probe.Snapshot(ctx)
		s.Capabilities = withFound(ctx, cfg)
		s.Executors = available(cfg.Executors)
		s.MaxParallel = int32(cfg.MaxParallel)
		s.Machine = machine
		s.MetricsUrl = cfg.MetricsURL
		s.Containers = cfg.Containers
		if cfg.Support != nil {
			s.Support = cfg.Support()
		}
		s.Running = room.running()
		reserved := cfg.Machine.Reserved()
		s.ReservedCores, s.ReservedMemoryMb = reserved.Cores, reserved.MemoryMB
		return s
	}
}
