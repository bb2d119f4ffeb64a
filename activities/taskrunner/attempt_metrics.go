package taskrunner

import (
	"cmp"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/metrics"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// attemptMetrics counts the attempts of a node in its metrics.
type attemptMetrics struct {
	metrics *metrics.Metrics // nil if they are not counted
	node    string
}

// attemptMetrics returns the counters of the node's attempts.
func (n *Node) attemptMetrics() attemptMetrics { return attemptMetrics{n.Metrics, n.Name} }

// countAttempt counts how an attempt, or each member of a batch, ended on this node. res is nil if the node itself was at
// fault.
func (c attemptMetrics) countAttempt(taskType string, res *historyv1.ExecuteResponse) {
	if res == nil {
		c.metrics.AttemptEnded(taskType, v1.TaskFailed, 0)
		return
	}
	switch res.GetReason() {
	case v1.ReasonNoRoom, v1.ReasonIncarnation: // others hold the room
		c.metrics.Contended(c.node)
	case v1.ReasonLeaseLost:
		c.metrics.LeaseExpired(c.node)
	}
	for _, m := range res.GetBatch() {
		c.metrics.AttemptEnded(taskType, cmp.Or(m.GetState(), v1.TaskCompleted), time.Duration(m.GetTookMs())*time.Millisecond)
	}
	if len(res.GetBatch()) > 0 && res.GetState() == v1.TaskCompleted {
		return
	}
	ran := res.GetCompletedAt().AsTime().Sub(res.GetStartedAt().AsTime())
	if res.GetStartedAt() == nil || res.GetNode() != c.node || len(res.GetBatch()) > 0 { // nothing ran, or it ran elsewhere
		ran = 0
	}
	c.metrics.AttemptEnded(taskType, res.GetState(), ran)
}

// countAgent adds the usage of an agent's attempt to the metrics. r is nil for any other attempt.
func (c attemptMetrics) countAgent(r *executor.AgentReport) {
	if r == nil {
		return
	}
	u, before := r.Usage, r.Before
	use := metrics.AgentUse{
		Model: u.GetModel(), Turns: int(u.GetTurns() - before.GetTurns()), ToolCalls: map[string]int{},
		InputTokens:      u.GetInputTokens() - before.GetInputTokens(),
		OutputTokens:     u.GetOutputTokens() - before.GetOutputTokens(),
		CacheReadTokens:  u.GetCacheReadTokens() - before.GetCacheReadTokens(),
		CacheWriteTokens: u.GetCacheWriteTokens() - before.GetCacheWriteTokens(),
		CostUSD:          u.GetCostUsd() - before.GetCostUsd(),
	}
	for _, event := range r.Events[len(r.Events)-r.Own:] {
		if event.GetEvent() == v1.EventToolCall {
			use.ToolCalls[event.GetTool()]++
		}
	}
	c.metrics.AgentEnded(use)
}
