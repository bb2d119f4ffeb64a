package run_test

import (
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestAgentThatReachedItsLimitIsNotRetried checks that an agent that reached a limit is not retried, and continues from
// its last turn when the run is retried. An agent whose provider refused is retried. Its turns and calls are stored
// only as events of the run.
func TestAgentThatReachedItsLimitIsNotRetried(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	p := startPuppet(c, "n", takeTurns(2, v1.ReasonProvider), takeTurns(4, v1.ReasonMaxTurns), takeTurns(6, ""))
	in := c.Input(`{name: agents, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 3, backoffMs: 1}}}}`)
	h := c.Submit(in)
	first := h.Wait()
	workertest.CheckRun(t, first, "failed", map[string]string{"a": "failed max_turns"})
	if n := first.GetTasks()["a"].GetResult().GetAgent().GetTurns(); n != 4 {
		t.Errorf("%d turns", n)
	}
	if got, want := lifecycleOf(h, "a", 1), "submitted queued assigned started turn tool_call turn failed retried queued assigned started turn tool_call turn failed"; got != want {
		t.Errorf("events are %s, want %s", got, want)
	}
	workertest.Replay(t, "agent", limits.Run{}, h.History(""))
	h = h.Rerun(in, 1, &historyv1.Rerun{Failed: true})
	second := h.Wait()
	workertest.CheckRun(t, second, "completed", map[string]string{"a": "completed"})
	if agent := second.GetTasks()["a"].GetResult().GetAgent(); agent.GetTurns() != 6 || agent.GetCostUsd() != 6 {
		t.Errorf("the agent has used %v", agent)
	}
	if got := p.checkpoints(); got != "a: a:turn 2 a:turn 4 " {
		t.Errorf("the requests bring %q", got)
	}
	for i, e := range storedEvents(h, 0) {
		if e.GetId() != names.EventID(0, "", int64(i)) {
			t.Fatalf("event %d has the id %s", i, e.GetId())
		}
	}
}
