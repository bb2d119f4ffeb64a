package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	agenttool "switchyard/activities/executor/subagent/tool"
	"switchyard/activities/executor/subagent/tool/fleet"
	"switchyard/dev/processes"
)

// TestAgentAsksPersonAndRunsTask uses an agent's fleet tools against a real gateway.
func TestAgentAsksPersonAndRunsTask(t *testing.T) {
	t.Parallel()
	s := shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), processes.Limit)
	defer cancel()
	f, err := fleet.New(ctx, fleet.Options{Gateway: s.Gateway, Run: "planner-1", Task: "plan", KeyPrefix: "planner-1/plan"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	use := func(name, id, arguments string) string {
		i := slices.IndexFunc(f.Tools(), func(each agenttool.Tool) bool { return each.Definition().Name == name })
		outcome, err := f.Tools()[i].Call(ctx, agenttool.Call{ID: id, Arguments: []byte(arguments)})
		if err != nil || outcome.IsError {
			t.Errorf("%s: %+v %v", name, outcome, err)
		}
		return outcome.Text
	}
	const task = `{"type":"shell","spec":{"command":"echo hello"}}`
	first := use("submit_task", "call-1", task)
	if again := use("submit_task", "call-1", task); !strings.Contains(first, `"run":"`) || !strings.Contains(again, `"existed":true`) {
		t.Errorf("%s, then %s", first, again)
	}
	answers := make(chan string, 1)
	go func() { answers <- use("ask_person", "call-2", `{"message":"Deploy ${{ this }}?"}`) }()
	id := ""
	processes.Await(t, "the question is asked", func() bool {
		if runs := ask[list[struct{ ID, State string }]](t, s.Gateway, "runs", "list", "--workflow", "agent-question"); len(runs.Items) > 0 {
			id = runs.Items[0].ID
		}
		return id != ""
	})
	processes.Await(t, "the question is rejected", func() bool {
		code, _, _ := run(t, "runs", "reject", id, "question", "--reason", "not today", "--gateway", s.Gateway)
		return code == 0
	})
	if got := <-answers; !strings.Contains(got, `"decision":"rejected"`) || !strings.Contains(got, `"reason":"not today"`) || !strings.Contains(got, id) {
		t.Errorf("%s", got)
	}
}

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
