package subagent

import (
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestTheLimitsOfAProgramAreThoseOfAllAttempts(t *testing.T) {
	t.Parallel()
	c, _ := newProgram(t, "")
	line := `{"type":"result","subtype":"success","session_id":"s-1","num_turns":3,"total_cost_usd":0.5,"is_error":true,"result":"overloaded"}`
	c.spec["command"] = []any{"sh", "-c", "echo \"$*\"; echo '" + line + "'", "agent"}
	c.spec["maxTurns"], c.spec["maxCostUsd"] = 7.0, 0.75
	for _, want := range []string{"--max-turns 7 --max-budget-usd 0.75", "--max-turns 4 --max-budget-usd 0.25"} {
		c.stdout.Reset()
		c.mustFail(v1.ReasonProvider, "overloaded")
		if got := c.stdout.String(); !strings.Contains(got, want) {
			t.Errorf("the program was called with %q, want %q", got, want)
		}
	}
	c.stdout.Reset()
	result := c.mustFail(v1.ReasonMaxCost, "the agent has cost $1.0000")
	if c.stdout.Len() > 0 || result.Agent.Usage.GetTurns() != 6 {
		t.Errorf("log %q, usage %v", c.stdout.String(), result.Agent.Usage)
	}
}
