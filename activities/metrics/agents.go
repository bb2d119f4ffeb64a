package metrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label "direction" of tokens.
const (
	tokensIn         = "input"
	tokensOut        = "output"
	tokensCacheRead  = "cache_read"
	tokensCacheWrite = "cache_write"
)

// unknownModel is the label value of an agent whose model is unknown.
const unknownModel = "(unknown)"

// AgentUse is the usage of one attempt of an agent, without that of earlier attempts.
type AgentUse struct {
	// Model is the model that replied last, or "" if unknown.
	Model string
	// Turns counts replies of the model, and ToolCalls the calls of each tool by its name.
	Turns     int
	ToolCalls map[string]int
	// InputTokens and OutputTokens count the tokens that the model has read outside of the cache and has written.
	InputTokens, OutputTokens int64
	// CacheReadTokens and CacheWriteTokens count the tokens that the provider has read from its cache and written to it.
	CacheReadTokens, CacheWriteTokens int64
	// CostUSD is 0 if the price of the model is not known.
	CostUSD float64
}

// agents holds the metrics of agents.
type agents struct {
	turns, toolCalls, tokens, cost *prometheus.CounterVec
	models, tools                  *boundedLabel
}

func newAgents(counter func(name, help string, labels ...string) *prometheus.CounterVec) agents {
	return agents{
		turns:     counter("switchyard_agent_turns_total", "Model replies to agents on this node."),
		toolCalls: counter("switchyard_agent_tool_calls_total", "Tool calls of agents on this node.", "tool"),
		tokens:    counter("switchyard_agent_tokens_total", "Tokens used by agents on this node, by kind.", "model", "direction"),
		cost:      counter("switchyard_agent_cost_usd_total", "Cost of the agents on this node in US dollars, at the node's prices.", "model"),
		models:    newBoundedLabel(maxModels),
		tools:     newBoundedLabel(maxTools),
	}
}

// AgentEnded counts the usage of an agent's attempt that has ended on this node. Values below 0 count as 0.
func (m *Metrics) AgentEnded(use AgentUse) {
	if m == nil {
		return
	}
	a := &m.agents
	a.turns.WithLabelValues().Add(float64(max(use.Turns, 0)))
	for tool, n := range use.ToolCalls {
		if n > 0 {
			a.toolCalls.WithLabelValues(a.tools.value(tool)).Add(float64(n))
		}
	}
	model := a.models.value(cmp.Or(use.Model, unknownModel))
	for direction, n := range map[string]int64{
		tokensIn: use.InputTokens, tokensOut: use.OutputTokens, tokensCacheRead: use.CacheReadTokens, tokensCacheWrite: use.CacheWriteTokens,
	} {
		if n > 0 {
			a.tokens.WithLabelValues(model, direction).Add(float64(n))
		}
	}
	if use.CostUSD > 0 {
		a.cost.WithLabelValues(model).Add(use.CostUSD)
	}
}
