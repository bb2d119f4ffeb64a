package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/liveness"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// withRemote makes a node run tasks of a remote type in a cluster.
func withRemote(jobs *fake.Cluster) func(*workers.NodeConfig) {
	return func(cfg *workers.NodeConfig) {
		cfg.Capabilities = map[string]string{v1.ClusterCapability(v1.DefaultCluster): "true"}
		cfg.Executors = append(cfg.Executors, fake.NewRemote(v1.TypeK8sJob, jobs))
	}
}

// remoteInput parses a definition with tasks of a remote type.
func remoteInput(c *workertest.Nodes, document string) *historyv1.RunInput {
	c.T.Helper()
	in := c.Input(document)
	for _, task := range in.GetDefinition().GetTasks() {
		task.Type = v1.TypeK8sJob
	}
	return in
}

// TestNextNodeContinuesRemoteAttempt checks that the next node continues the same remote attempt, however it lost its
// node, without spending a retry.
func TestNextNodeContinuesRemoteAttempt(t *testing.T) {
	t.Parallel()
	begun := func(state, reason string) move {
		return func(context.Context, *puppet) (*historyv1.ExecuteResponse, error) {
			return &historyv1.ExecuteResponse{State: state, Reason: reason, Error: "for a test", StartedAt: at(0), CompletedAt: at(1)}, nil
		}
	}
	for name, test := range map[string]struct {
		moves      []move
		state      string
		dispatches string // attempt, claim, and whether it continues an attempt
	}{
		"silent node":                  {moves: []move{die(true)}, state: "completed", dispatches: "0.1 0.2+"},
		"silent node before the start": {moves: []move{die(false)}, state: "completed", dispatches: "0.1 0.2"},
		"later worker":                 {moves: []move{answer("lost", "node_lost")}, state: "completed", dispatches: "0.1 0.2+"},
		"lease":                        {moves: []move{begun("moved", "lease_lost"), begun("moved", "lease_lost"), begun("moved", "lease_lost"), begun("moved", "lease_lost")}, state: "completed", dispatches: "0.1 0.2+ 0.3+ 0.4+ 0.5+"},
		"drain":                        {moves: []move{begun("moved", "draining"), answer("moved", "no_room")}, state: "completed", dispatches: "0.1 0.2+ 0.3+"},
		"not started":                  {moves: []move{answer("moved", "not_started"), answer("moved", "incarnation")}, state: "completed", dispatches: "0.1 0.2 0.3"},
		"evicted":                      {moves: []move{begun("lost", "evicted")}, state: "lost evicted", dispatches: "0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, nil)
			p := newPuppet(c, c.Start("n", withRemote(fake.NewCluster())), "n", names.RemoteLane, test.moves...)
			in := remoteInput(c, `{name: remote-outcome, tasks: {x: {type: shell, spec: {command: x}, retry: {retryable: false}}}}`)
			in.Options.HeartbeatTimeout = durationpb.New(workertest.ShortHeartbeat)
			h := c.Submit(in)
			run := h.Wait()
			state := map[bool]string{true: "completed", false: "failed"}[test.state == "completed"]
			workertest.CheckRun(t, run, state, map[string]string{"x": test.state})
			var got []string
			for _, r := range p.requests {
				word := fmt.Sprintf("%d.%d", r.GetAttempt(), r.GetClaim())
				if r.GetContinues() {
					word += "+"
				}
				got = append(got, word)
			}
			if got := strings.Join(got, " "); got != test.dispatches {
				t.Errorf("dispatches are %s, want %s", got, test.dispatches)
			}
			if text := run.Tasks["x"].GetError(); test.state == "lost evicted" && text != "for a test" {
				t.Errorf("the error is %q", text)
			}
			workertest.Replay(t, "remote-"+strings.ReplaceAll(name, " ", "-"), limits.Run{}, h.History(""))
		})
	}
}

// TestRemoteAttemptOutlivesItsNode checks that a Job whose node disappears continues on another node: it was started
// once, and no attempt is counted.
func TestRemoteAttemptOutlivesItsNode(t *testing.T) {
	t.Parallel()
	c, jobs := workertest.Shared(t).Nodes(t, nil), fake.NewCluster()
	var cut context.CancelCauseFunc
	p := newPuppet(c, c.Start("n", withRemote(jobs)), "n", names.RemoteLane, func(ctx context.Context, p *puppet) (*historyv1.ExecuteResponse, error) {
		req := p.requests[0]
		var own context.Context
		own, cut = context.WithCancelCause(context.Background())
		go func() { // the rest of the node's process does not matter
			_, _ = fake.NewRemote(v1.TypeK8sJob, jobs).Run(own, executor.Attempt{Identity: executor.Identity{
				Run: req.GetRunId(), Chain: req.GetChain(), Task: req.GetTask(), Node: p.name, Index: -1, Claim: req.GetClaim(),
			}}, func() {})
		}()
		if err := jobs.Await(ctx, "x", func(j []fake.Job) bool { return len(j) == 1 && j[0].Starts == 1 }); err != nil {
			return nil, err
		}
		activity.RecordHeartbeat(ctx, &historyv1.ExecuteProgress{Spawned: true, StartedAt: at(0)})
		go p.node.Stop()
		<-p.silence
		return nil, nil
	})
	in := remoteInput(c, `{name: remote-outlives, tasks: {x: {type: shell, spec: {command: x}, retry: {retryable: false}}}}`)
	in.Options.HeartbeatTimeout = durationpb.New(workertest.ShortHeartbeat)
	h := c.Submit(in)
	ctx, cancel := context.WithTimeout(t.Context(), workertest.Limit)
	defer cancel()
	if err := jobs.Await(ctx, "x", func(j []fake.Job) bool { return len(j) == 1 && j[0].Starts == 1 }); err != nil {
		t.Fatal(err)
	}
	c.Start("m", withRemote(jobs), func(cfg *workers.NodeConfig) { cfg.MaxParallel = 1 })
	if err := jobs.Await(ctx, "x", func(j []fake.Job) bool { return len(j[0].Dispatches) == 2 }); err != nil {
		t.Fatal(err)
	}
	cut(executor.ErrLetGo)
	if last := jobs.Jobs("x")[0].Dispatches[1]; !last.Remote.Continues || last.Identity.Node != c.Name("m") || last.Identity.Claim != 2 || last.Identity.Attempt != 0 {
		t.Errorf("it continues as %+v", last.Identity)
	}
	alive := liveness.Attempts{Client: c.Conn.Client, CheckFleet: c.Conn.CheckFleet}
	isOpen := func(change func(id *executor.Identity)) bool {
		id := jobs.Jobs("x")[0].Identity
		change(&id)
		open, err := alive.IsOpen(ctx, id)
		if err != nil {
			t.Error(err)
		}
		return open
	}
	same := func(*executor.Identity) {}
	if !isOpen(same) || isOpen(func(id *executor.Identity) { id.Attempt++ }) || isOpen(func(id *executor.Identity) { id.Generation++ }) ||
		isOpen(func(id *executor.Identity) { id.Task = "other" }) || isOpen(func(id *executor.Identity) { id.Run = "other" }) {
		t.Error("other attempts are waited for than the one that runs")
	}
	other := *c.Conn
	other.Fleet = "the namespace before the server lost its database"
	if open, err := (liveness.Attempts{Client: c.Conn.Client, CheckFleet: other.CheckFleet}).IsOpen(ctx, executor.Identity{Run: "unknown", Index: -1}); err == nil {
		t.Errorf("a server that knows nothing of the run says that it is open: %t", open)
	}
	jobs.End("x", executor.Result{})
	run := h.Wait()
	if isOpen(same) {
		t.Error("the attempt is waited for after its run has ended")
	}
	workertest.CheckRun(t, run, "completed", map[string]string{"x": "completed"})
	if x := run.GetTasks()["x"]; x.GetAttempt() != 0 || len(x.GetAttempts()) != 1 || x.GetNode() != c.Name("m") || len(p.requests) != 1 {
		t.Errorf("the task is %v", x)
	}
	if err := jobs.Await(ctx, "x", func(j []fake.Job) bool { return j[0].Recorded == 1 }); err != nil {
		t.Error("the executor was not told that the end is recorded")
	}
	if all := jobs.Jobs("x"); len(all) != 1 || all[0].Starts != 1 || all[0].Stopped {
		t.Errorf("Jobs: %+v", all)
	}
	workertest.Replay(t, "remote-outlives", limits.Run{}, h.History(""))
}

func TestInstanceCountsAsAwaitedUntilItsEnd(t *testing.T) {
	t.Parallel()
	c, jobs := workertest.Shared(t).Nodes(t, nil), fake.NewCluster()
	c.Start("n", withRemote(jobs))
	h := c.Submit(remoteInput(c, `{name: remote-instances, tasks: {x: {type: shell, spec: {command: x}, parallel: 2}}}`))
	ctx, cancel := context.WithTimeout(t.Context(), workertest.Limit)
	defer cancel()
	if err := jobs.Await(ctx, "x", func(j []fake.Job) bool { return len(j) == 2 }); err != nil {
		t.Fatal(err)
	}
	alive := liveness.Attempts{Client: c.Conn.Client, CheckFleet: c.Conn.CheckFleet}
	for _, j := range jobs.Jobs("x") {
		later := j.Identity
		later.Attempt++
		if open, err := alive.IsOpen(ctx, j.Identity); err != nil || !open {
			t.Errorf("instance %d: %v, %v", j.Identity.Index, open, err)
		}
		if open, err := alive.IsOpen(ctx, later); err != nil || open {
			t.Errorf("a later attempt of instance %d: %v, %v", j.Identity.Index, open, err)
		}
	}
	jobs.End("x", executor.Result{})
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"x": "completed"})
}
