package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"switchyard/activities"
	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
	"switchyard/workflows/names"
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
	// MaxParallel is the most tasks that the node runs at once; 0: its cores, at least 4.
	MaxParallel int
	// Machine is shared by the nodes of one process.
	Machine   *node.Machine
	Executors []executor.Executor
	// WorkDir is where relative working directories start; empty: the process's own.
	WorkDir string
	// ScratchDir is where attempts get their private directories.
	ScratchDir string
	// SharedDir is given to tasks as SWITCHYARD_SHARED_DIR; empty: none.
	SharedDir string
}

const (
	// Time between the heartbeats of an attempt, where the server pushes a cancel
	// to the worker, and where the answer to a heartbeat must carry it.
	pushedBeat = 5 * time.Second
	polledBeat = time.Second
	// nodeStopTimeout is how long a stopping node waits for its attempts, which are
	// then being ended: their grace, and some time to report.
	nodeStopTimeout = 20 * time.Second
	// registerTimeout bounds the registration of a node.
	registerTimeout = 20 * time.Second
)

// withDefaults fills in what may be left out and says what is missing.
func (c NodeConfig) withDefaults() (NodeConfig, error) {
	switch {
	case c.Client == nil, c.Store == nil, c.Logger == nil, c.Machine == nil, c.ScratchDir == "", len(c.Executors) == 0:
		return c, errors.New("node: Client, Store, Logger, Machine, ScratchDir and Executors are required")
	case c.Name == "" || node.Name(c.Name) != c.Name:
		return c, fmt.Errorf("node name %q: use at most 63 of a-z, 0-9, '.' and '-', with a letter or digit at both ends, such as %s", c.Name, node.Name(c.Name))
	case c.MaxParallel < 0:
		return c, fmt.Errorf("node %s: max parallel is %d; it must be at least 1, or 0 for the default", c.Name, c.MaxParallel)
	}
	if c.MaxParallel == 0 {
		c.MaxParallel = max(int(c.Machine.Total().Cores), 4)
	}
	c.Logger = c.Logger.With("node", c.Name)
	return c, nil
}

// Node is a running node worker.
type Node struct {
	cfg        NodeConfig
	workspaces *workspace.Root
	workers    []worker.Worker
	stop       sync.Once
}

// StartNode starts a node worker and registers the node. It does not block once
// the node is registered; Stop ends it.
func StartNode(ctx context.Context, cfg NodeConfig) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	beat := polledBeat
	if cfg.Client.PushesCancel {
		beat = pushedBeat
	}
	n := &Node{cfg: cfg, workspaces: workspace.NewRoot(cfg.ScratchDir)}
	ledger := node.NewLedger(cfg.Machine, cfg.MaxParallel)
	host := &activities.Node{
		Name: cfg.Name, Client: cfg.Client, Store: cfg.Store, Room: room{ledger},
		Executors: map[string]executor.Executor{}, BaseDir: cfg.WorkDir, Workspaces: n.workspaces,
		SharedDir: cfg.SharedDir, BeatInterval: beat, Logger: cfg.Logger,
	}
	for _, e := range cfg.Executors {
		host.Executors[e.Type()] = e
	}
	host.Snapshot = snapshotter(cfg, ledger)

	err = errors.Join(
		n.serve(names.ControlLane, worker.Options{
			MaxConcurrentActivityExecutionSize: 4,
			MaxConcurrentActivityTaskPollers:   1,
			WorkerStopTimeout:                  time.Second,
		}, names.HeartbeatActivity, host.Heartbeat),
		n.serve(names.CPULane, worker.Options{
			// Twice the slots, because the queue is filled ahead; the ledger gates the start.
			MaxConcurrentActivityExecutionSize: 2 * cfg.MaxParallel,
			MaxConcurrentActivityTaskPollers:   4,
			WorkerStopTimeout:                  nodeStopTimeout,
		}, names.ExecuteActivity, host.Execute),
	)
	if err == nil {
		err = n.register(ctx)
	}
	if err != nil {
		n.Stop()
		return nil, fmt.Errorf("start node %s: %w", cfg.Name, err)
	}
	return n, nil
}

// serve starts a worker for a queue of the node.
func (n *Node) serve(lane names.Lane, opts worker.Options, activityType string, f any) error {
	opts.DisableWorkflowWorker = true
	w := worker.New(n.cfg.Client.Client, names.NodeQueue(n.cfg.Name, lane), opts)
	w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: activityType})
	if err := w.Start(); err != nil {
		return err
	}
	n.workers = append(n.workers, w)
	return nil
}

// register opens the node's registry entry. The entry of an earlier start is replaced.
func (n *Node) register(ctx context.Context) error {
	_, err := n.cfg.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       names.NodeWorkflowID(n.cfg.Name),
		TaskQueue:                names.ControlQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
		StaticSummary:            "node " + n.cfg.Name,
	}, names.NodeWorkflow, &v1.NodeInput{Name: n.cfg.Name, Incarnation: uuid.NewString()})
	return err
}

// Stop ends the node: waiting attempts are handed back, running ones are stopped
// and handed back, and the node leaves the fleet. A second Stop does nothing.
func (n *Node) Stop() {
	n.stop.Do(func() {
		// The attempts first, while the node still counts as alive.
		for _, w := range slices.Backward(n.workers) {
			w.Stop()
		}
		if err := n.workspaces.Close(); err != nil {
			n.cfg.Logger.Warn("a private directory was not removed", "error", err)
		}
	})
}

// snapshotter returns what takes the node's figures for its heartbeat.
func snapshotter(cfg NodeConfig, ledger *node.Ledger) func(context.Context) *v1.NodeSnapshot {
	dir := cfg.WorkDir
	if dir == "" {
		dir = "."
	}
	probe := node.NewProbe(node.ProbeOptions{Dir: dir, Logger: cfg.Logger})
	machine := machineID()
	var types []string
	for _, e := range cfg.Executors {
		types = append(types, e.Type())
	}
	slices.Sort(types)
	return func(ctx context.Context) *v1.NodeSnapshot {
		s := probe.Snapshot(ctx)
		s.Labels = slices.Sorted(slices.Values(cfg.Labels))
		s.Capabilities = cfg.Capabilities
		s.Executors = types
		s.MaxParallel = int32(cfg.MaxParallel)
		s.Machine = machine
		s.Running = running(ledger)
		reserved := cfg.Machine.Reserved()
		s.ReservedCores, s.ReservedMemoryMb = reserved.Cores, reserved.MemoryMB
		return s
	}
}
