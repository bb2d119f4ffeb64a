package workers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// takeTurns returns a move that ends the dispatch as an agent does that has taken the given number of turns in all
// attempts, the last two in this one.
func takeTurns(turns int32, reason string) move {
	return func(_ context.Context, p *puppet) (*v1.ExecuteResponse, error) {
		res := &v1.ExecuteResponse{
			State: "completed", Result: &v1.TaskResult{Agent: &v1.AgentUsage{Model: "m", Turns: turns, CostUsd: float64(turns)}}, Node: p.name,
			AssignedAt: at(1), StartedAt: at(2), CompletedAt: at(9),
			AgentEvents: []*v1.AgentEvent{
				{At: at(3), Event: v1.EventTurn, Turn: turns - 1, TookMs: 500},
				{At: at(4), Event: v1.EventToolCall, Turn: turns - 1, TookMs: 500, Tool: "files"},
				{At: at(5), Event: v1.EventTurn, Turn: turns, TookMs: 500},
			},
		}
		if reason != "" {
			res.State, res.Reason, res.Error = "failed", reason, "for a test"
			res.Checkpoint = &v1.Checkpoint{Data: fmt.Appendf(nil, "turn %d", turns)}
		}
		return res, nil
	}
}

// TestAgentsReachTheirLimits checks that an agent that reached a limit is not retried, and continues from its last turn
// when the run is retried. An agent whose provider refused is retried. Its turns and calls are stored only as events of
// the run.
func TestAgentsReachTheirLimits(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	p := c.puppet("n", takeTurns(2, v1.ReasonProvider), takeTurns(4, v1.ReasonMaxTurns), takeTurns(6, ""))
	in := c.input(`{name: agents, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 3, backoffMs: 1}}}}`)
	h := c.submit(in)
	first := h.wait()
	want(t, first, "failed", map[string]string{"a": "failed max_turns"})
	if n := first.GetTasks()["a"].GetResult().GetAgent().GetTurns(); n != 4 {
		t.Errorf("%d turns", n)
	}
	if got, want := h.lifecycle("a", 1), "submitted queued assigned started turn tool_call turn failed retried queued assigned started turn tool_call turn failed"; got != want {
		t.Errorf("events are %s, want %s", got, want)
	}
	replay(t, "agent", limits.Run{}, h.history(""))
	h = h.anew(in, 1, &v1.Rerun{Failed: true})
	second := h.wait()
	want(t, second, "completed", map[string]string{"a": "completed"})
	if agent := second.GetTasks()["a"].GetResult().GetAgent(); agent.GetTurns() != 6 || agent.GetCostUsd() != 6 {
		t.Errorf("the agent has used %v", agent)
	}
	if got := p.checkpoints(); got != "a: a:turn 2 a:turn 4 " {
		t.Errorf("the requests bring %q", got)
	}
	for i, e := range h.stored(0) {
		if e.GetId() != names.EventID(0, "", int64(i)) {
			t.Fatalf("event %d has the id %s", i, e.GetId())
		}
	}
}

// TestAgentsInPartsHaveEvents checks that the turns of instances of a large fan-out are events of the child that
// carries them.
func TestAgentsInPartsHaveEvents(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: inParts})
	c := y.workers(t, nil)
	var moves []move
	for range 6 {
		moves = append(moves, takeTurns(2, ""))
	}
	c.puppet("n", moves...)
	h := c.submit(c.input(`{name: "agents-in-parts", tasks: {each: {type: shell, spec: {command: x}, parallel: 6}}}`))
	want(t, h.wait(), "completed", map[string]string{"each": "completed"})
	for from, count := range map[int]int{0: 4, 4: 2} {
		var got []string
		child := h.child(0, "each", from)
		for _, e := range child.stored(0) {
			if e.GetTask() == fmt.Sprintf("each[%d]", from) {
				got = append(got, e.GetEvent())
			}
		}
		if !slices.Contains(got, "turn") || !strings.HasSuffix(strings.Join(got, " "), "assigned started turn tool_call turn completed") {
			t.Errorf("events of the first of %d instances from %d: %v", count, from, got)
		}
	}
}
