package activities

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/logs"
	"switchyard/activities/metrics"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// defaultStartTimeout is how long an attempt that was taken up may wait, for room
	// or for anything else, before it is handed back.
	defaultStartTimeout = 30 * time.Second
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
	// cleanupTimeout bounds what is done after the task's process has ended.
	cleanupTimeout = 30 * time.Second
)

// Room hands out places on a node. Acquire waits until there is one with all that
// the attempt needs, GPUs and NUMA node included, and fails when ctx ends or when
// there can never be one. release gives it back.
type Room interface {
	Acquire(ctx context.Context, req *v1.ExecuteRequest) (release func(), err error)
}

// Node has the activities of one machine. It is safe for concurrent use.
type Node struct {
	Name string
	// Incarnation is the identity of this start of the worker: attempts that were
	// placed on another one are handed back. Empty: that is not looked at.
	Incarnation string
	Client      client.Client
	Store       *store.Store
	Room        Room
	Executors   map[string]executor.Executor // by task type
	// BaseDir is where relative working directories start.
	BaseDir string
	// Workspaces is where attempts get their private directories.
	Workspaces *workspace.Root
	// SharedDir is given to tasks as SWITCHYARD_SHARED_DIR; empty: none.
	SharedDir string
	// HasGPUs says that the machine has GPUs: tasks that were given none then see none.
	// It may change while the node runs; nil: there are none.
	HasGPUs func() bool
	// BeatInterval is the longest time between the heartbeats of an attempt; there
	// are at least five in its heartbeat time-out. 0: as many as that.
	BeatInterval time.Duration
	// StartTimeout is how long an attempt may wait for its start; 0: 30 s.
	StartTimeout time.Duration
	// Metrics counts attempts; nil: nobody does.
	Metrics *metrics.Metrics
	Logger  *slog.Logger

	attempts attempts
	arrivals arrivals
}

func (n *Node) startTimeout() time.Duration { return cmp.Or(n.StartTimeout, defaultStartTimeout) }

// Execute runs one attempt of a task and returns how it ended, when nothing of
// it is left. Cancelling the activity stops the attempt. An attempt whose task was
// completed by an earlier one, of which nobody heard, returns what that one left.
func (n *Node) Execute(ctx context.Context, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	return n.executeFrom(ctx, deliveryOf(ctx), req)
}

func (n *Node) executeFrom(ctx context.Context, d delivery, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	ctx, a := n.takeUp(ctx, d, req)
	defer a.end()
	n.Metrics.Claimed(n.Name)
	res, err := n.execute(ctx, a)
	if res != nil && res.Node == "" {
		a.stamp(res)
	}
	n.measure(req.GetType(), res)
	return res, err
}

func (n *Node) execute(ctx context.Context, a *attempt) (*v1.ExecuteResponse, error) {
	req := a.req
	if want := req.GetIncarnation(); want != "" && n.Incarnation != "" && want != n.Incarnation {
		return moved("incarnation", fmt.Sprintf("node %s was started again since", n.Name)), nil
	}
	exec := n.Executors[req.GetType()]
	if exec == nil {
		return moved("no_executor", fmt.Sprintf("node %s runs no tasks of type %s", n.Name, req.GetType())), nil
	}
	if ctx.Err() != nil {
		return stopped(ctx, nil), nil
	}
	release, err := n.Room.Acquire(ctx, req)
	switch {
	case err == nil:
		defer release()
	case context.Cause(ctx) == errNotStarted:
		return moved("no_room", fmt.Sprintf("node %s had no room within %v", n.Name, n.startTimeout())), nil
	case ctx.Err() != nil:
		return stopped(ctx, nil), nil
	default:
		return moved("no_room", err.Error()), nil
	}
	record, key, err := n.awaitAnswered(ctx, req)
	if err != nil {
		return stopped(ctx, nil), nil
	}
	if record != nil {
		return cut(record, key, req), nil
	}
	return n.run(ctx, a, exec)
}

// run runs an attempt that has its place.
func (n *Node) run(ctx context.Context, a *attempt, exec executor.Executor) (*v1.ExecuteResponse, error) {
	req := a.req
	outputs, err := n.parentOutputs(ctx, req)
	if err != nil {
		if ctx.Err() != nil {
			return stopped(ctx, nil), nil
		}
		return nil, fmt.Errorf("read the outputs of the parents of %s: %w", req.GetTask(), err)
	}
	ws, err := n.Workspaces.Prepare(workspace.Request{
		RunID: req.GetRunId(), Workflow: req.GetWorkflow(), Task: req.GetTask(),
		TaskID:  req.GetRunId() + "/" + req.GetTask(),
		Attempt: int(req.GetAttempt()), Node: n.Name, NUMANode: numaNode(req),
		Env: req.GetEnv(), Input: req.GetInput(), Parents: outputs, SharedDir: n.SharedDir,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the workspace of %s: %w", req.GetTask(), err)
	}
	defer func() {
		if err := ws.Close(); err != nil {
			n.Logger.Warn("a workspace was not removed", "run", req.GetRunId(), "task", req.GetTask(), "error", err)
		}
	}()
	if a.confirm(ctx) != nil || !n.attempts.start(a) {
		return stopped(ctx, nil), nil
	}
	log := logs.NewWriter(n.Store, logs.Attempt{Run: req.GetRunId(), Task: req.GetTask(), Attempt: req.GetAttempt(), Claim: req.GetClaim()}, logs.Options{})

	runCtx, cancel := ctx, context.CancelFunc(func() {})
	if t := req.GetTimeout().AsDuration(); t > 0 {
		runCtx, cancel = context.WithTimeoutCause(ctx, t, errTimeout)
	}
	defer cancel()
	result, err := exec.Run(runCtx, executor.Attempt{
		ID:       fmt.Sprintf("%s/%s/c%d", req.GetRunId(), req.GetTask(), req.GetClaim()),
		Spec:     req.GetSpec(),
		Env:      ws.Env(),
		BaseDir:  n.BaseDir,
		Stdout:   log.Stream("stdout"),
		Stderr:   log.Stream("stderr"),
		Grace:    stopGrace,
		Lease:    a.lease,
		GPUs:     n.gpus(a),
		NUMANode: req.NumaNode,
		// Placement gives GPUs together with the NUMA node that they are near to,
		// whether or not the task asks for that.
		NUMAOptional: len(req.GetGpus()) > 0 && (req.GetResources() == nil || req.Resources.NumaNode == nil),
	}, a.spawned)
	if done := err == nil && !result.Stopped && result.ExitCode == 0; a.lease.Over() || a.lease.Lost() && !done {
		// The watchdog may have ended it. What has done its work before it was asked to
		// stop counts for as long as it cannot run elsewhere.
		a.stop(errLeaseLost)
		result.Stopped, err = true, nil
	}

	res, brokenErr := interpret(runCtx, result, err)
	// What follows must happen although the attempt was cancelled.
	cleanup, done := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer done()
	if err := log.Close(cleanup); err != nil {
		n.Logger.Warn("a part of a log was not stored", "run", req.GetRunId(), "task", req.GetTask(), "error", err)
	}
	if brokenErr != nil {
		return nil, fmt.Errorf("run %s: %w", req.GetTask(), brokenErr)
	}
	if res.GetState() == "moved" {
		return res, nil
	}
	a.stamp(res)
	collectStreams(res.GetResult(), log)
	collectFiles(res, ws)
	explain(res)
	return n.report(cleanup, a, res)
}

// report returns what is to be said of an attempt that has run: what it left,
// unless an earlier one that nobody heard of has completed meanwhile.
func (n *Node) report(ctx context.Context, a *attempt, res *v1.ExecuteResponse) (*v1.ExecuteResponse, error) {
	record, key, err := n.answered(ctx, a.req)
	if err != nil {
		n.Logger.Warn("an earlier result could not be looked for", "run", a.req.GetRunId(), "task", a.req.GetTask(), "error", err)
	}
	if record != nil {
		return cut(record, key, a.req), nil
	}
	if a.lease.Over() {
		// This process was held up since the end; the task may be running elsewhere.
		return moved("lease_lost", errLeaseLost.Error()), nil
	}
	return n.keep(ctx, a.req, res)
}

// parentOutputs reads the outputs that did not travel with the request.
func (n *Node) parentOutputs(ctx context.Context, req *v1.ExecuteRequest) (map[string]*structpb.Struct, error) {
	outputs := make(map[string]*structpb.Struct, len(req.GetParents()))
	for _, p := range req.GetParents() {
		outputs[p.GetTask()] = p.GetOutput()
		if p.GetRecord() == "" {
			continue
		}
		var record v1.ExecuteResponse
		if err := n.Store.AwaitMessage(ctx, p.GetRecord(), &record, store.Arrival); err != nil {
			return nil, fmt.Errorf("task %s: %w", p.GetTask(), err)
		}
		outputs[p.GetTask()] = record.GetResult().GetOutput()
	}
	return outputs, nil
}
