package workers_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/registry"
	"switchyard/activities/taskrunner"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// keptNodes are the nodes of a test whose attempts have a keeper, and whose workers leave them to the next one.
type keptNodes struct {
	*workertest.Nodes
	survivor *fake.Survivor
}

func newKept(t *testing.T, s workertest.Script) *keptNodes {
	t.Helper()
	k := &keptNodes{workertest.Shared(t).Nodes(t, s), fake.NewSurvivor("shell", s)}
	k.Fake = k.survivor.Executor
	return k
}

// start starts a worker whose state is in a folder. keep enforces the leases in it.
func (k *keptNodes) start(short, state string, keep func(dir string) error) *workers.Node {
	k.T.Helper()
	return k.Start(short, k.setting(state, keep))
}

// setting returns the settings of such a worker.
func (k *keptNodes) setting(state string, keep func(dir string) error) func(*workers.NodeConfig) {
	return func(cfg *workers.NodeConfig) {
		cfg.Executors, cfg.StateDir, cfg.OfflineAfter = []executor.Executor{k.survivor}, state, 2*time.Second
		cfg.KeepOnStop, cfg.Guard = true, keep
	}
}

// TestNextWorkerContinuesWhatARestartKeeps checks that a node restarts rather than leaves, gets nothing new meanwhile, and
// continues its attempt under its next worker, with the same number and start.
func TestNextWorkerContinuesWhatARestartKeeps(t *testing.T) {
	t.Parallel()
	k := newKept(t, workertest.Script{"long": {{Block: true}, {Block: true}}})
	name, state := k.Name("a"), filepath.Join(t.TempDir(), "state")
	first := k.start("a", state, func(string) error { return nil })
	h := k.Submit(k.Input(`{name: kept, tasks: {long: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [long]}}}`))
	k.AwaitRunning("long")
	stops := time.Now()
	first.Drain(t.Context(), workertest.Limit)
	first.Stop()
	n, err := registry.New(k.Conn).Get(t.Context(), name)
	if err != nil || n.GetState() != v1.NodeRestarting || !strings.HasPrefix(n.GetReason(), "1 task runs on without the worker, until ") {
		t.Fatalf("after the stop: %v, %v", n, err)
	}
	if wait := time.Until(n.GetRestartingUntil().AsTime()); wait < 2*time.Second || wait > time.Minute {
		t.Errorf("the next worker is awaited for %s", wait)
	}
	if err := registry.New(k.Conn).Remove(t.Context(), name); err == nil {
		t.Error("a node that restarts can be removed")
	}
	if _, err := registry.New(k.Conn).RemoveDead(t.Context(), name); !errors.Is(err, registry.ErrState) || !strings.Contains(err.Error(), "restarts until ") {
		t.Errorf("a node with a task that runs on is dead: %v", err)
	}
	k.start("a", state, func(string) error { return nil })
	k.AwaitState(name, v1.NodeActive)
	workertest.Eventually(t, "the attempt continues", func() bool { return k.Calls()["long"] == 2 })
	k.Fake.Release("long")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	long := run.Tasks["long"]
	if long.GetNode() != name || long.GetAttempt() != 0 || long.GetStartedAt().AsTime().After(stops) {
		t.Errorf("it was continued as %v; its first worker stopped at %s", long, stops)
	}
	if k.Calls()["after"] != 1 || len(k.survivor.Removed()) > 0 {
		t.Errorf("calls %v, removed %v", k.Calls(), k.survivor.Removed())
	}
}

// unansweredClient is the client of a worker that is stopped after a registration has reached the server, and before its answer.
type unansweredClient struct {
	client.Client
	stop context.CancelFunc
}

func (c unansweredClient) UpdateWithStartWorkflow(ctx context.Context, o client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if _, err := c.Client.UpdateWithStartWorkflow(ctx, o); err != nil {
		return nil, err
	}
	c.stop()
	return nil, ctx.Err()
}

// TestWorkerStoppedWhileItRegistersKeepsWhatARestartKeeps checks that a worker which is stopped without the answer to its
// registration restarts, too, so that the one after it continues the attempt.
func TestWorkerStoppedWhileItRegistersKeepsWhatARestartKeeps(t *testing.T) {
	t.Parallel()
	k := newKept(t, workertest.Script{"long": {{Block: true}, {Block: true}}})
	name, state, keep := k.Name("a"), filepath.Join(t.TempDir(), "state"), func(string) error { return nil }
	first := k.start("a", state, keep)
	h := k.Submit(k.Input(`{name: kept, tasks: {long: {type: shell, spec: {command: x}}}}`))
	k.AwaitRunning("long")
	first.Stop()
	ctx, stop := context.WithCancel(t.Context())
	conn := *k.Conn
	conn.Client = unansweredClient{k.Conn.Client, stop}
	second := k.NodeConfig("a")
	k.setting(state, keep)(&second)
	second.Client, second.OfflineAfter = &conn, workertest.Limit
	if _, err := workers.StartNode(ctx, second); err == nil {
		t.Fatal("it has started without an answer")
	}
	n, err := registry.New(k.Conn).Get(t.Context(), name)
	if err != nil || n.GetState() != v1.NodeRestarting || n.GetIncarnation() == first.Incarnation() || !strings.HasPrefix(n.GetReason(), "1 task runs on") {
		t.Fatalf("after the second stop: %v, %v", n, err)
	}
	k.start("a", state, keep)
	workertest.Eventually(t, "the attempt continues", func() bool { return k.Calls()["long"] == 2 })
	k.Fake.Release("long")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if long := run.Tasks["long"]; long.GetNode() != name || long.GetAttempt() != 0 {
		t.Errorf("it was continued as %v", long)
	}
}

// TestRestartDoesNotWaitForTemporal checks that a node which keeps attempts stops before their leases are over although Temporal has
// just stopped to answer, and that the next worker continues them.
func TestRestartDoesNotWaitForTemporal(t *testing.T) {
	t.Parallel()
	k := newKept(t, workertest.Script{"long": {{Block: true}, {Block: true}}})
	state, keep := filepath.Join(t.TempDir(), "state"), func(string) error { return nil }
	first := k.StartBehindLink("a", k.setting(state, keep))
	in := k.Input(`{name: away, tasks: {long: {type: shell, spec: {command: x}}}}`)
	in.Definition.Tasks["long"].HeartbeatTimeout = "1m"
	h := k.Submit(in)
	k.AwaitRunning("long")
	first.Cut()
	began := time.Now()
	first.Node.Drain(t.Context(), workertest.Limit)
	first.Node.Stop()
	if took := time.Since(began); took > 9*time.Second { // a worker of one lane waits for 10 s
		t.Errorf("the stop took %s", took)
	}
	first.Mend()
	k.start("a", state, keep)
	workertest.Eventually(t, "the attempt continues", func() bool { return k.Calls()["long"] == 2 })
	k.Fake.Release("long")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if long := run.Tasks["long"]; long.GetAttempt() != 0 {
		t.Errorf("it was continued as %v", long)
	}
}

// TestKeptAttemptEndsBeforeItsTaskStartsElsewhere checks that a node is offline if its worker does not come back, and that its
// keeper has ended the attempt before another node starts the task.
func TestKeptAttemptEndsBeforeItsTaskStartsElsewhere(t *testing.T) {
	t.Parallel()
	k := newKept(t, workertest.Script{"long": {{Block: true}, {}}})
	name := k.Name("a")
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	first := k.start("a", filepath.Join(t.TempDir(), "state"), func(dir string) error {
		keeper := &taskrunner.Keeper{Dir: dir, Node: name, Executor: k.survivor}
		go func() {
			for ctx.Err() == nil {
				_, _ = keeper.EndOverdue(ctx)
				time.Sleep(20 * time.Millisecond)
			}
		}()
		return nil
	})
	in := k.Input(`{name: lost, tasks: {long: {type: shell, spec: {command: x}, retry: {maxRetries: 1}}}}`)
	in.Definition.Tasks["long"].HeartbeatTimeout = "2s"
	h := k.Submit(in)
	k.AwaitRunning("long")
	first.Stop()
	k.AwaitState(name, v1.NodeRestarting)
	k.start("b", filepath.Join(t.TempDir(), "state"), func(string) error { return nil })
	workertest.Eventually(t, "the task starts elsewhere", func() bool { return k.Calls()["long"] == 2 })
	if removed := k.survivor.Removed(); len(removed) != 1 {
		t.Errorf("at the second start, %v has been ended", removed)
	}
	if n := k.AwaitState(name, v1.NodeOffline); n.GetReason() != "its worker did not come back from a restart" {
		t.Errorf("the node is %v", n)
	}
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if long := run.Tasks["long"]; long.GetNode() != k.Name("b") || long.GetAttempt() != 1 {
		t.Errorf("it ended as %v", long)
	}
}

// TestWorkerThatKeepsNothingLeaves checks that a worker without an attempt to keep leaves the fleet, and that no worker keeps
// attempts without a keeper.
func TestWorkerThatKeepsNothingLeaves(t *testing.T) {
	t.Parallel()
	k := newKept(t, workertest.Script{"long": {{Block: true}, {}}})
	first := k.start("a", filepath.Join(t.TempDir(), "state"), nil)
	h := k.Submit(k.Input(`{name: nothing, tasks: {long: {type: shell, spec: {command: x}}}}`))
	k.AwaitRunning("long")
	k.start("b", filepath.Join(t.TempDir(), "state"), nil)
	first.Stop()
	if n := k.AwaitState(k.Name("a"), v1.NodeOffline); n.GetReason() != "left" {
		t.Errorf("the node is %v", n)
	}
	workertest.CheckRun(t, h.Wait(), "completed", nil)
}
