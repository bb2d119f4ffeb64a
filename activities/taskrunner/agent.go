package taskrunner

import (
	"switchyard/activities/executor"
	"switchyard/activities/metrics"
	v1 "switchyard/proto/switchyard/v1"
)

// countAgent adds the usage of an agent's attempt to the metrics. r is nil for any other attempt.
func (n *Node) countAgent(r *executor.AgentReport) {
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
	n.Metrics.AgentEnded(use)
}
