package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/logs"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// Causes for which an attempt is stopped.
var (
	errTimeout   = errors.New("timeout")
	errCancelled = errors.New("cancelled")
	errDraining  = errors.New("the node stops")
	errGone      = errors.New("the server knows the attempt no more")
)

const (
	// roomTimeout is how long an attempt waits for room on its node before it is handed back.
	roomTimeout = 30 * time.Second
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
	// cleanupTimeout bounds what is done after the task's process has ended.
	cleanupTimeout = 30 * time.Second
)

// Room hands out places on a node. Acquire waits until there is one, in the
// order of the calls, and fails when ctx ends or when there can never be one.
type Room interface {
	Acquire(ctx context.Context, attempt *v1.RunningAttempt, res *v1.Resources) (release func(), err error)
}

// Node has the activities of one machine. It is safe for concurrent use.
type Node struct {
	Name      string
	Client    client.Client
	Store     *store.Store
	Room      Room
	Executors map[string]executor.Executor // by task type
	// BaseDir is where relative working directories start.
	BaseDir string
	// Workspaces is where attempts get their private directories.
	Workspaces *workspace.Root
	// SharedDir is given to tasks as SWITCHYARD_SHARED_DIR; empty: none.
	SharedDir string
	// BeatInterval is the time between the heartbeats of an attempt.
	BeatInterval time.Duration
	// Snapshot takes the figures that the node's own heartbeat carries.
	Snapshot func(context.Context) *v1.NodeSnapshot
	Logger   *slog.Logger
}

// Execute runs one attempt of a task and returns how it ended, when nothing of
// it is left. Cancelling the activity stops the attempt.
func (n *Node) Execute(ctx context.Context, req *v1.ExecuteRequest) (*v1.ExecuteResponse, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	beat := n.startBeat(ctx, stop, activity.GetInfo(ctx).TaskToken, req.GetClaim())
	defer beat.stop()

	exec := n.Executors[req.GetType()]
	if exec == nil {
		return moved("no_executor", fmt.Sprintf("node %s runs no tasks of type %s", n.Name, req.GetType())), nil
	}
	release, err := n.acquire(ctx, req)
	if err != nil {
		if ctx.Err() != nil {
			return stopped(ctx, nil), nil
		}
		return moved("no_room", err.Error()), nil
	}
	defer release()
	if ctx.Err() != nil {
		return stopped(ctx, nil), nil
	}
	return n.run(ctx, exec, req, beat)
}

func (n *Node) acquire(ctx context.Context, req *v1.ExecuteRequest) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	return n.Room.Acquire(ctx, &v1.RunningAttempt{RunId: req.GetRunId(), Task: req.GetTask(), Claim: req.GetClaim()}, req.GetResources())
}

// run runs an attempt that has its place.
func (n *Node) run(ctx context.Context, exec executor.Executor, req *v1.ExecuteRequest, beat *beat) (*v1.ExecuteResponse, error) {
	outputs, err := n.parentOutputs(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("read the outputs of the parents of %s: %w", req.GetTask(), err)
	}
	ws, err := n.Workspaces.Prepare(workspace.Request{
		RunID: req.GetRunId(), Workflow: req.GetWorkflow(), Task: req.GetTask(),
		TaskID:  req.GetRunId() + "/" + req.GetTask(),
		Attempt: int(req.GetAttempt()), Node: n.Name,
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
	log := logs.NewWriter(n.Store, logs.Attempt{Run: req.GetRunId(), Task: req.GetTask(), Attempt: req.GetAttempt(), Claim: req.GetClaim()}, logs.Options{})

	runCtx, cancel := ctx, context.CancelFunc(func() {})
	if t := req.GetTimeout().AsDuration(); t > 0 {
		runCtx, cancel = context.WithTimeoutCause(ctx, t, errTimeout)
	}
	defer cancel()
	result, err := exec.Run(runCtx, executor.Attempt{
		ID:      fmt.Sprintf("%s/%s/c%d", req.GetRunId(), req.GetTask(), req.GetClaim()),
		Spec:    req.GetSpec(),
		Env:     ws.Env(),
		BaseDir: n.BaseDir,
		Stdout:  log.Stream("stdout"),
		Stderr:  log.Stream("stderr"),
		Grace:   stopGrace,
	}, beat.spawned)

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
	res.StartedAt, res.CompletedAt = beat.startedAt(), timestamppb.Now()
	collectStreams(res.GetResult(), log)
	collectFiles(res, ws)
	explain(res)
	return n.keep(cleanup, req, res)
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
		if err := n.Store.GetMessage(ctx, p.GetRecord(), &record); err != nil {
			return nil, fmt.Errorf("task %s: %w", p.GetTask(), err)
		}
		outputs[p.GetTask()] = record.GetResult().GetOutput()
	}
	return outputs, nil
}
