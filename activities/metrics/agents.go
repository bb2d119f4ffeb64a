package metrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"
)

// Directions of tokens, the label "direction".
const (
	tokensIn         = "input"
	tokensOut        = "output"
	tokensCacheRead  = "cache_read"
	tokensCacheWrite = "cache_write"
)

// unknownModel is the label of an agent whose model is not known.
const unknownModel = "(unknown)"

// AgentUse is what one attempt of an agent has used: not what attempts before it have.
type AgentUse struct {
	// Model has replied last, or is "" if none is known.
	Model string
	// Turns are replies of the model, and ToolCalls calls of tools, by the name of the tool.
	Turns     int
	ToolCalls map[string]int
	// Tokens that the model has read, without those of the cache, and has written.
	InputTokens, OutputTokens int64
	// Tokens that the provider has read from its cache, and has put there.
	CacheReadTokens, CacheWriteTokens int64
	// CostUSD is 0 if the price of the model is not known.
	CostUSD float64
}

// agents are the figures of agents.
type agents struct {
	turns, toolCalls, tokens, cost *prometheus.CounterVec
	models, tools                  *boundedLabel
}

func newAgents(counter func(name, help string, labels ...string) *prometheus.CounterVec) agents {
	return agents{
		turns:     counter("switchyard_agent_turns_total", "Replies of models to agents on this node."),
		toolCalls: counter("switchyard_agent_tool_calls_total", "Calls of tools by agents on this node.", "tool"),
		tokens:    counter("switchyard_agent_tokens_total", "Tokens of agents on this node, by what became of them.", "model", "direction"),
		cost:      counter("switchyard_agent_cost_usd_total", "What agents on this node have cost in US dollars, by the prices of the node.", "model"),
		models:    newBoundedLabel(maxModels),
		tools:     newBoundedLabel(maxTools),
	}
}

// AgentEnded counts what an attempt of an agent has used that has ended on this node. Figures below 0 count as 0.
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
