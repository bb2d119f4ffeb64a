package run_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// puppet is a node of the fleet whose attempts end as a test scripts. It can fall silent like a node whose machine has
// failed.
type puppet struct {
	*workertest.Nodes
	name string
	node *workers.Node

	mu       sync.Mutex
	requests []*historyv1.ExecuteRequest
	silence  chan struct{}
}

// move is how a puppet handles one dispatch.
type move func(ctx context.Context, p *puppet) (*historyv1.ExecuteResponse, error)

// startPuppet starts a puppet that performs the moves in order and then completes every further dispatch.
func startPuppet(c *workertest.Nodes, short string, moves ...move) *puppet {
	c.T.Helper()
	return newPuppet(c, c.Start(short), short, names.CPULane, moves...)
}

// newPuppet stops the last lane of a node and returns a puppet that receives the dispatches of the lane in its place.
func newPuppet(c *workertest.Nodes, n *workers.Node, short string, of names.Lane, moves ...move) *puppet {
	c.T.Helper()
	n.StopLastLane()
	p := &puppet{Nodes: c, name: c.Name(short), node: n, silence: make(chan struct{})}
	w := worker.New(c.Conn.Client, names.NodeQueue(p.name, of), worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivityWithOptions(func(ctx context.Context, req *historyv1.ExecuteRequest) (*historyv1.ExecuteResponse, error) {
		p.mu.Lock()
		p.requests = append(p.requests, req)
		do := complete
		if len(p.requests) <= len(moves) {
			do = moves[len(p.requests)-1]
		}
		p.mu.Unlock()
		return do(ctx, p)
	}, activity.RegisterOptions{Name: names.ExecuteActivity})
	if err := w.Start(); err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() {
		close(p.silence)
		w.Stop()
	})
	return p
}

// dispatches returns the requests as a text.
func (p *puppet) dispatches() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var words []string
	for _, r := range p.requests {
		words = append(words, fmt.Sprintf("%d.%d%v", r.GetAttempt(), r.GetClaim(), r.GetUnacknowledged()))
	}
	return strings.Join(words, " ")
}

// members returns the indexes of the instances in each request to a puppet.
func (p *puppet) members() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var words []string
	for _, r := range p.requests {
		var numbers []string
		for _, m := range r.GetBatch() {
			numbers = append(numbers, fmt.Sprintf("%d.%d", m.GetIndex(), m.GetAttempt()))
		}
		if len(numbers) == 0 {
			numbers = append(numbers, fmt.Sprintf("%d.%d", r.GetIndex(), r.GetAttempt()))
		}
		words = append(words, strings.Join(numbers, "+"))
	}
	return strings.Join(words, " ")
}

// checkpoints returns the checkpoints in the requests as a text.
func (p *puppet) checkpoints() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	for _, r := range p.requests {
		text += fmt.Sprintf("%s:%s ", r.GetTask(), r.GetCheckpoint().GetData())
	}
	return text
}

// at returns a time that the clock of this machine cannot show.
func at(second int64) *timestamppb.Timestamp {
	return timestamppb.New(time.Unix(2_000_000_000+second, 0))
}

// complete ends the dispatch as a node does that has done the task.
func complete(_ context.Context, p *puppet) (*historyv1.ExecuteResponse, error) {
	return &historyv1.ExecuteResponse{
		State: "completed", Result: &v1.TaskResult{}, Node: p.name,
		AssignedAt: at(1), StartedAt: at(2), CompletedAt: at(3),
	}, nil
}

// die returns a move that heartbeats once and then never again.
func die(spawned bool) move {
	return func(ctx context.Context, p *puppet) (*historyv1.ExecuteResponse, error) {
		beat := &historyv1.ExecuteProgress{Spawned: spawned}
		if spawned {
			beat.StartedAt = at(0)
		}
		activity.RecordHeartbeat(ctx, beat)
		<-p.silence
		return nil, nil
	}
}

// leave heartbeats once, and then its node leaves the fleet.
func leave(ctx context.Context, p *puppet) (*historyv1.ExecuteResponse, error) {
	activity.RecordHeartbeat(ctx, &historyv1.ExecuteProgress{Spawned: true, StartedAt: at(0)})
	go p.node.Stop()
	<-p.silence
	return nil, nil
}

// loseLease hands the dispatch back after its process has started.
func loseLease(context.Context, *puppet) (*historyv1.ExecuteResponse, error) {
	return &historyv1.ExecuteResponse{State: "moved", Reason: "lease_lost", Error: "for a test", StartedAt: at(0), CompletedAt: at(1)}, nil
}

// answer returns a move that hands the dispatch back or fails it.
func answer(state, reason string) move {
	return func(context.Context, *puppet) (*historyv1.ExecuteResponse, error) {
		return &historyv1.ExecuteResponse{State: state, Reason: reason, Error: "for a test"}, nil
	}
}

// breakDown fails the activity.
func breakDown(context.Context, *puppet) (*historyv1.ExecuteResponse, error) {
	return nil, temporal.NewApplicationError("the disk is full", "disk")
}

// takeTurns returns a move that ends the dispatch as an agent does that has taken the given number of turns in all
// attempts, the last two in this one.
func takeTurns(turns int32, reason string) move {
	return func(_ context.Context, p *puppet) (*historyv1.ExecuteResponse, error) {
		res := &historyv1.ExecuteResponse{
			State: "completed", Result: &v1.TaskResult{Agent: &v1.AgentUsage{Model: "m", Turns: turns, CostUsd: float64(turns)}}, Node: p.name,
			AssignedAt: at(1), StartedAt: at(2), CompletedAt: at(9),
			AgentEvents: []*historyv1.AgentEvent{
				{At: at(3), Event: v1.EventTurn, Turn: turns - 1, TookMs: 500},
				{At: at(4), Event: v1.EventToolCall, Turn: turns - 1, TookMs: 500, Tool: "files"},
				{At: at(5), Event: v1.EventTurn, Turn: turns, TookMs: 500},
			},
		}
		if reason != "" {
			res.State, res.Reason, res.Error = "failed", reason, "for a test"
			res.Checkpoint = &historyv1.Checkpoint{Data: fmt.Appendf(nil, "turn %d", turns)}
		}
		return res, nil
	}
}
