package e2e

import (
	"strings"
	"testing"

	"switchyard/dev/processes"
)

// TestAgentDispatchesSubagents lets an agent start others through its tool, on its node's gateway, and read their
// answers.
func TestAgentDispatchesSubagents(t *testing.T) {
	t.Parallel()
	s := shared(t)
	model := startScript(t, []byte(`
rules:
  - when: { user: Ask three others, turns: 0 }
    reply:
      toolCalls: [{ name: dispatch_subagents, arguments: { prompt: Say a number, count: 3, contextSummary: we count } }]
  - when: { user: Say a number }
    reply: { text: forty-two }
  - when: { toolResultText: forty-two }
    reply: { text: they all said forty-two }
`))
	file := write(t, `
name: planner
tasks:
  plan:
    type: subagent
    resources: { cores: 0 }
    spec: { prompt: Ask three others, tools: [fleet], baseUrl: "`+model+`" }
`)
	code, stdout, stderr := run(t, "submit", file, "--watch", "-o", "json", "--gateway", s.Gateway)
	if code != 0 || !strings.Contains(stdout, "they all said forty-two") {
		t.Fatalf("exit code %d: %s\n%s", code, stdout, stderr)
	}
	processes.Await(t, "the list has the run of the subagents, which has completed", func() bool {
		runs := ask[list[runItem]](t, s.Gateway, "runs", "list", "--workflow", "agent-subagents").Items
		return len(runs) == 1 && runs[0].State == "completed"
	})
}
