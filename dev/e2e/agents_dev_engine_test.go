//go:build engines

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
	"switchyard/dev/scriptedmodel"
)

// agentKey is the key of the scripted model. Only the provider may receive it.
const agentKey = "sk-ant-7f3c91d2e8a64b05"

// TestAgents runs agents in every way on one stack with a scripted model.
func TestAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scratch := filepath.Join(dir, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	begin := func() *processes.Stack {
		return startDevWith(t, binary, []string{"ANTHROPIC_API_KEY=" + agentKey},
			"--db", filepath.Join(dir, "temporal.db"), "--log-level", "debug", "--max-parallel", "16", "--scratch-dir", scratch)
	}
	s := begin()
	needSandbox(t, s.Gateway)
	found := newLeaks(t, agentKey)
	t.Run("shown", func(t *testing.T) { testAgentIsShown(t, s, found) })
	restart := func(m *heldModel) *processes.Stack {
		s.Signal(syscall.SIGKILL)
		s.Wait()
		processes.Await(t, "the model sees that the stack has ended", func() bool { return m.heldNow() == 0 })
		found.search("the log of dev", s.Stdout.String()+s.Stderr.String())
		s = begin()
		return s
	}
	t.Run("program", func(t *testing.T) { testProgramIsResumed(t, s, restart) })
	s.Signal(syscall.SIGTERM)
	s.Wait()
	found.search("the log of dev", s.Stdout.String()+s.Stderr.String())
	found.searchFolder(dir, "")
}

// agentDefinition returns a definition with tasks that may use the key.
func agentDefinition(name, tasks string) string {
	return fmt.Sprintf(`
name: %s
defaults:
  type: subagent
  retry: { maxRetries: 1, backoffMs: 10 }
  secretEnv: { ANTHROPIC_API_KEY: "env:ANTHROPIC_API_KEY" }
  resources: { cores: 0.01 }
tasks:
%s`, name, tasks)
}

// testAgentIsShown reads an agent through every interface, and searches for its key, which the model returns and a
// command prints.
func testAgentIsShown(t *testing.T, s *processes.Stack, found *leaks) {
	usage := &scriptedmodel.Usage{Input: 1000, Output: 200}
	file := agentCalls("write_file", `{"path": "notes.txt", "content": "one"}`)
	command := agentCalls("shell", `{"command": "env; echo marker-log `+agentKey+`; exit 3"}`)
	file.Usage, command.Usage = usage, usage
	m := startHeldModel(t, "no such words", scriptedmodel.Script{Key: agentKey, Rules: []scriptedmodel.Rule{
		{When: agentTurns(0, ""), Reply: file},
		{When: agentTurns(1, ""), Reply: command},
		{When: scriptedmodel.When{Turns: new(2), ToolResultText: "marker-log"}, Reply: scriptedmodel.Reply{Text: "marker-output " + agentKey, Usage: usage}},
	}})
	id := s.Submit(t, agentDefinition("shown-agent", `
  agent: { spec: { model: claude-sonnet-5, baseUrl: `+m.url+`, tools: [files, shell], prompt: "Look around." } }
`))
	do(t, s.Gateway, 0, "runs", "watch", id)
	if got := s.Get(t, id).Tasks["agent"]; got.Result.Output["text"] != "marker-output ***" {
		t.Errorf("the task is %+v", got)
	}
	events := func() string {
		var events []string
		for _, e := range ask[list[eventItem]](t, s.Gateway, "runs", "events", id, "--task", "agent").Items {
			events = append(events, e.Event)
		}
		return strings.Join(events, " ")
	}
	processes.AwaitText(t, "the events have the turns and calls", events, func(events string) bool {
		return strings.Contains(events, "started turn tool_call turn tool_call turn completed")
	})
	awaitLogText(t, s.Gateway, id, "agent", "marker-output ***")
	for _, shown := range []struct {
		args []string
		want []string
	}{
		{[]string{"runs", "get", id, "agent"}, []string{"3 turns", "2 tool calls", "3,000 tokens in", "600 out", "$0.0", "claude-sonnet-5"}},
		{[]string{"runs", "events", id}, []string{"turn 1", "write_file", "shell", "exit code 3"}},
		{[]string{"runs", "logs", id}, []string{"I call shell.", "marker-log ***", "marker-output ***", "turn 3: 1000 tokens in, 200 out", `write_file {"path":"notes.txt"`}},
		{[]string{"runs", "get", id, "-o", "json"}, []string{"marker-output ***"}},
		{[]string{"runs", "events", id, "-o", "json"}, []string{`"tool_call"`}},
		{[]string{"runs", "explain", id, "agent"}, nil},
		{[]string{"runs", "timeline", id}, nil},
	} {
		stdout, stderr := do(t, s.Gateway, 0, shown.args...)
		found.search(strings.Join(shown.args, " "), stdout+stderr)
		for _, want := range shown.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%v has no %q:\n%s%s", shown.args, want, stdout, stderr)
			}
		}
	}
	found.searchHistories(s.Temporal, id)
	found.searchProcesses()
	for _, want := range []string{
		"\nswitchyard_agent_turns_total ", `switchyard_agent_tool_calls_total{tool="shell"} `,
		`switchyard_agent_tokens_total{direction="input",model="claude-sonnet-5"} `, `switchyard_agent_cost_usd_total{model="claude-sonnet-5"} `,
	} {
		processes.Await(t, "the figures have "+want, func() bool { return strings.Contains(processes.Fetch(t, s.Gateway+"/metrics"), want) })
	}
	for _, seen := range []string{"log", "output"} {
		if !found.seen[seen] {
			t.Errorf("nothing of the %s was searched", seen)
		}
	}
}

// resumable is an agent program in shell: a new session blocks for ever, and a resumed one answers.
const resumable = `
case "$*" in
*"--resume session-1"*)
  echo '{"type":"system","subtype":"init","session_id":"session-1","model":"scripted"}'
  echo '{"type":"assistant","message":{"id":"m2","model":"scripted","content":[{"type":"text","text":"I continue."}],"usage":{"input_tokens":10,"output_tokens":5}}}'
  echo '{"type":"result","subtype":"success","is_error":false,"result":"The program is done.","session_id":"session-1","num_turns":1,"total_cost_usd":0.25,"usage":{"input_tokens":100,"output_tokens":50}}'
  ;;
*)
  cat >/dev/null
  echo '{"type":"system","subtype":"init","session_id":"session-1","model":"scripted"}'
  echo '{"type":"assistant","message":{"id":"m1","model":"scripted","content":[{"type":"text","text":"I begin."}],"usage":{"input_tokens":10,"output_tokens":5}}}'
  exec sleep "$0"
  ;;
esac
`

// testProgramIsResumed kills the stack while an agent program runs and while another agent waits for its model. Both
// continue when the node is back.
func testProgramIsResumed(t *testing.T, s *processes.Stack, restart func(m *heldModel) *processes.Stack) {
	seconds := strconv.Itoa(os.Getpid()*1000 + 2)
	m := startHeldModel(t, "hold.txt", scriptedmodel.Script{Key: agentKey, Rules: []scriptedmodel.Rule{
		{When: agentTurns(0, ""), Reply: agentCalls("write_file", `{"path": "hold.txt", "content": "written before the kill"}`)},
		{When: agentTurns(1, ""), Reply: agentCalls("read_file", `{"path": "hold.txt"}`)},
		{When: scriptedmodel.When{Turns: new(2), ToolResultText: "written before the kill"}, Reply: scriptedmodel.Reply{Text: "The agent is done."}},
	}})
	id := s.Submit(t, agentDefinition("resumed-agents", fmt.Sprintf(`
  program: { spec: { command: [sh, -c, %[2]q, %[3]q], prompt: "Do the work." } }
  agent: { spec: { model: claude-sonnet-5, baseUrl: %[1]s, tools: [files], prompt: "Do the work." } }
`, m.url, resumable, seconds)))
	processes.Await(t, "both are busy", func() bool { return m.heldNow() == 1 && sleepers(t, seconds) == 1 })
	s = restart(m)
	processes.Await(t, "the program of the first attempt has ended", func() bool { return sleepers(t, seconds) == 0 })
	processes.Await(t, "both are done", func() bool {
		m.letGo()
		return !slices.Contains([]string{"", "pending", "running"}, s.Get(t, id).State)
	})
	d := s.Get(t, id)
	if p, a := d.Tasks["program"], d.Tasks["agent"]; p.State != "completed" || p.Result.Output["text"] != "The program is done." ||
		a.State != "completed" || a.Result.Output["text"] != "The agent is done." {
		t.Errorf("the run is %+v", d)
	}
	if twice := askedTwice(m.Server); len(twice) > 0 || m.Delivered() != 3 {
		t.Errorf("the model was asked %d times, twice: %s", len(m.Requests()), strings.Join(twice, "\n"))
	}
	awaitLogText(t, s.Gateway, id, "program", "I continue.")
	if stdout, _ := do(t, s.Gateway, 0, "runs", "get", id, "program"); !strings.Contains(stdout, "session session-1") {
		t.Errorf("the program is shown as\n%s", stdout)
	}
}
