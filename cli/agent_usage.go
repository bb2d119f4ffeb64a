package cli

import (
	"fmt"
	"strings"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// agentText returns the usage of an agent, such as "12 turns, 5 tool calls, 48,200 tokens in, 3,100 out, $0.21,
// claude-x", or "" if there is none. Cache tokens count as input.
func agentText(u *v1.AgentUsage) string {
	if u == nil {
		return ""
	}
	parts := []string{countOf(u.GetTurns(), "turn"), countOf(u.GetToolCalls(), "tool call")}
	if in := u.GetInputTokens() + u.GetCacheReadTokens() + u.GetCacheWriteTokens(); in > 0 || u.GetOutputTokens() > 0 {
		parts = append(parts, phrase.Tokens(in, u.GetOutputTokens()))
	}
	if u.GetCostUsd() > 0 {
		parts = append(parts, phrase.Dollars(u.GetCostUsd()))
	}
	if u.GetModel() != "" {
		parts = append(parts, words.OneLine(u.GetModel()))
	}
	if u.GetSession() != "" {
		parts = append(parts, "session "+words.OneLine(u.GetSession()))
	}
	return strings.Join(parts, ", ")
}

func countOf(n int32, what string) string {
	if n != 1 {
		what += "s"
	}
	return phrase.Number(int64(n)) + " " + what
}

// agentsText returns the total usage and the number of all agents of a run, or "" if it has none. Results reused from
// another run cost nothing in this run and do not count.
func agentsText(run *v1.Run) string {
	agents, sum := 0, &v1.AgentUsage{}
	add := func(u *v1.AgentUsage, cachedFrom string) {
		if u == nil || cachedFrom != "" {
			return
		}
		agents++
		sum.Turns += u.GetTurns()
		sum.ToolCalls += u.GetToolCalls()
		sum.InputTokens += u.GetInputTokens() + u.GetCacheReadTokens() + u.GetCacheWriteTokens()
		sum.OutputTokens += u.GetOutputTokens()
		sum.CostUsd += u.GetCostUsd()
	}
	for _, t := range run.GetTasks() {
		add(t.GetResult().GetAgent(), t.GetCachedFrom())
		for _, i := range t.GetInstances() {
			add(i.GetResult().GetAgent(), i.GetCachedFrom())
		}
	}
	switch agents {
	case 0:
		return ""
	case 1:
		return agentText(sum)
	}
	return fmt.Sprintf("%d: %s", agents, agentText(sum))
}
