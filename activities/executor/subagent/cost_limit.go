package subagent

import (
	"fmt"

	"switchyard/activities/executor/subagent/model"
	v1 "switchyard/proto/switchyard/v1"
)

// The cost limit of an agent, maxCostUsd of its spec, bounds what all attempts of its task spend together:
//
//   - The journal has the cost of each turn, so the cost of earlier attempts counts. A turn costs what the prices of the
//     node say (see activities/executor/subagent/model/prices.go), or what a delegated program reports.
//   - An agent with a limit fails before its first turn if the node does not know the prices of its model.
//   - The limit is checked before a turn and before a tool call, never in between, so the last turn may exceed it. A reply
//     that is an answer still ends the task well. A delegated program is given what is left, and enforces it itself (see
//     activities/executor/subagent/program/streamjson/transcript.go).
//   - The task fails for the reason max_cost and is not retried (see IsFinalReason in proto/switchyard/v1/states.go).
//   - `runs retry --max-cost` raises the limit. The agent then continues from its last turn (see
//     gateway/runretry/agent_limits.go).

// checkPrices returns an error if the agent has a cost limit and its node does not know the prices of its model.
func (e *Executor) checkPrices(spec *v1.SubagentSpec) error {
	if _, known := e.o.Prices.Cost(spec.GetModel(), model.Usage{}); !known && spec.GetMaxCostUsd() > 0 {
		return cannotStart(fmt.Errorf("maxCostUsd requires the prices of model %s, which this node does not know; add them to the file given with --agent-prices", spec.GetModel()))
	}
	return nil
}

// checkCost returns a *giveUp if the agent has reached its cost limit.
func checkCost(spec *v1.SubagentSpec, used *v1.AgentUsage) error {
	if limit := spec.GetMaxCostUsd(); limit > 0 && used.GetCostUsd() >= limit {
		return &giveUp{v1.ReasonMaxCost, fmt.Errorf("the agent has cost $%.4f; its limit is $%.4f (raise it with `switchyard runs retry RUN --max-cost TASK=USD`)", used.GetCostUsd(), limit)}
	}
	return nil
}

// costLeft returns what a delegated program may still cost, or 0 if the agent has no cost limit.
func costLeft(spec *v1.SubagentSpec, used *v1.AgentUsage) float64 {
	return max(0, spec.GetMaxCostUsd()-used.GetCostUsd())
}
