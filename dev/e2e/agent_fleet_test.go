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

// TestAgentWorksOnFiles gives an agent the files of another task, and what it has changed to a third.
func TestAgentWorksOnFiles(t *testing.T) {
	t.Parallel()
	s := shared(t)
	model := startScript(t, []byte(`
rules:
  - when: { user: Mend the text, turns: 0 }
    reply: { toolCalls: [{ name: read_file, arguments: { path: app/text } }] }
  - when: { user: Mend the text, turns: 1, toolResultText: teh text }
    reply: { toolCalls: [{ name: write_file, arguments: { path: app/text, content: the text } }] }
  - when: { user: Mend the text, turns: 2 }
    reply: { text: mended }
`))
	file := write(t, `
name: mending
tasks:
  draft:
    type: shell
    resources: { cores: 0 }
    spec: { command: "mkdir app && printf 'teh text' > app/text" }
    artifacts: { out: [{ name: app, path: app }] }
  mend:
    type: subagent
    dependsOn: [draft]
    resources: { cores: 0 }
    spec: { prompt: Mend the text, tools: [files], baseUrl: "`+model+`" }
    artifacts: { in: [{ from: draft.app, path: app }], out: [{ name: app, path: app }] }
  print:
    type: shell
    dependsOn: [mend]
    resources: { cores: 0 }
    spec: { command: cat text }
    artifacts: { in: [{ from: mend.app, path: . }] }
`)
	code, stdout, stderr := run(t, "submit", file, "--watch", "-o", "json", "--gateway", s.Gateway)
	if code != 0 || !strings.Contains(stdout, `"the text"`) {
		t.Fatalf("exit code %d: %s\n%s", code, stdout, stderr)
	}
}
