package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestAgentLabelsAreBounded counts agents with more models and tools than have label values of their own.
func TestAgentLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	for i := range max(maxModels, maxTools) + 10 {
		m.AgentEnded(AgentUse{Model: fmt.Sprintf("m%d", i), ToolCalls: map[string]int{fmt.Sprintf("t%d", i): 1}, CostUSD: 1, OutputTokens: 2})
	}
	var lines []string
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "switchyard_agent_") {
			lines = append(lines, line)
		}
	}
	for prefix, want := range map[string]int{
		"switchyard_agent_cost_usd_total{": maxModels + 1, "switchyard_agent_tokens_total{": maxModels + 1, "switchyard_agent_tool_calls_total{": maxTools + 1,
	} {
		n := 0
		for _, line := range lines {
			if strings.HasPrefix(line, prefix) {
				n++
			}
		}
		if n != want {
			t.Errorf("%d figures %s, want %d", n, prefix, want)
		}
	}
	if !slices.Contains(lines, `switchyard_agent_tool_calls_total{tool="(other)"} 10`) {
		t.Errorf("the tools beyond the bound are not counted together")
	}
}

// TestAgentFiguresNeverFall checks that an attempt that reports less than earlier ones, as after a lost record, changes
// nothing, and that an agent without a price costs nothing.
func TestAgentFiguresNeverFall(t *testing.T) {
	t.Parallel()
	m, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	m.AgentEnded(AgentUse{Turns: -1, ToolCalls: map[string]int{"shell": -2}, InputTokens: -3, CostUSD: -4})
	m.AgentEnded(AgentUse{Turns: 1, OutputTokens: 5})
	var lines []string
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "switchyard_agent_") {
			lines = append(lines, line)
		}
	}
	want := []string{`switchyard_agent_tokens_total{direction="output",model="(unknown)"} 5`, "switchyard_agent_turns_total 1"}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
