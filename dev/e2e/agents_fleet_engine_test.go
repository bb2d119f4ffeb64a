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
	"switchyard/dev/testneeds"
)

// travellers returns the script of agents that write a file, stay busy on nodes whose names begin with "leaves", and
// read their file afterwards. Agents with "ask" in their prompt are busy with a held request, the others with a
// command.
func travellers(seconds string) scriptedmodel.Script {
	return scriptedmodel.Script{Rules: []scriptedmodel.Rule{
		{When: agentTurns(0, ""), Reply: agentCalls("write_file", `{"path": "notes.txt", "content": "written on the first node"}`)},
		{When: agentTurns(1, "ask"), Reply: agentCalls("write_file", `{"path": "hold.txt", "content": "x"}`)},
		{When: agentTurns(1, ""), Reply: agentCalls("shell", fmt.Sprintf(`{"command": "case $SWITCHYARD_NODE in leaves*) exec sleep %s;; esac"}`, seconds))},
		{When: agentTurns(2, ""), Reply: agentCalls("read_file", `{"path": "notes.txt"}`)},
		{When: scriptedmodel.When{Turns: new(3), ToolResultText: "written on the first node"}, Reply: scriptedmodel.Reply{Text: "I am done."}},
	}}
}

// sleepers counts the processes that sleep for the given number of seconds.
func sleepers(t *testing.T, seconds string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range files {
		if text, err := os.ReadFile(path); err == nil && string(text) == "sleep\x00"+seconds+"\x00" {
			n++
		}
	}
	return n
}

func TestAgentsMoveToOtherNodes(t *testing.T) {
	t.Parallel()
	testAgentsMove(t, 6)
}

func TestLongManyAgentsMoveToOtherNodes(t *testing.T) {
	t.Parallel()
	testneeds.Long(t)
	testAgentsMove(t, 20)
}

// testAgentsMove makes agents lose their node in the middle of requests and commands: by a drain and, for many of them,
// by a kill.
func testAgentsMove(t *testing.T, many int) {
	s := startDev(t, "--nodes", "0")
	slots := max(4, many/2) // per node; a single node cannot take all of many agents at once
	join := func(name string) *processes.Program {
		return startWorker(t, s.Temporal, s.Gateway, name, "--max-parallel", strconv.Itoa(slots), "--metrics-address", "none", "--offline-after", "5s", "--drain-timeout", "100ms")
	}
	// busy waits until the given number of agents are held, or have done their work on the node that stays.
	busy := func(m *heldModel, seconds string, agents int) {
		t.Helper()
		processes.Await(t, "the agents are busy or on the node that stays", func() bool {
			past := 0 // commands that have ended
			for _, request := range m.Requests() {
				if c := request.Conversation; c.Turns() == 2 && strings.HasSuffix(c.Messages[0].Text, "run") {
					past++
				}
			}
			return m.heldNow()+sleepers(t, seconds)+past == agents
		})
	}
	// begin starts agents, half of which ask. The node that leaves must be the only one that takes tasks; begin waits
	// until the agents are busy on it.
	begin := func(m *heldModel, seconds string, agents int) (id string) {
		stdout, _ := do(t, s.Gateway, 0, "submit", write(t, fmt.Sprintf(`
name: travellers-%[3]s
tasks:
  agent:
    type: subagent
    parallel: %[1]d
    resources: { cores: 0.01 }
    retry: { maxRetries: 3, backoffMs: 10 }
    spec:
      model: scripted
      baseUrl: %[2]s
      tools: [files, shell]
      prompt: "agent ${{ input.index }} has to ${{ input.index %% 2 == 0 ? 'ask' : 'run' }}"
`, agents, m.url, seconds)))
		id = strings.TrimSpace(stdout)
		busy(m, seconds, min(agents, slots))
		return id
	}
	// finish waits for the end of a run whose node has left, and returns its agents.
	finish := func(m *heldModel, id, seconds string, agents int) (left []instanceItem) {
		processes.Await(t, "every agent is done or held", func() bool {
			m.letGo()
			left = instances(t, s.Gateway, id, "agent")
			return !slices.ContainsFunc(left, func(i instanceItem) bool { return i.State != "completed" })
		})
		if twice := askedTwice(m.Server); len(left) != agents || len(twice) > 0 || m.Repeated() > 0 {
			t.Errorf("%d agents, asked twice: %s", len(left), strings.Join(twice, "\n"))
		}
		if n := sleepers(t, seconds); n != 0 {
			t.Errorf("%d commands still run", n)
		}
		return left
	}
	// asleep returns how long the commands of a run sleep. The number identifies their processes.
	asleep := func(run int) string { return strconv.Itoa(os.Getpid()*1000 + many*10 + run) }
	unknown := "The outcome of this call is unknown"

	join("leaves-1")
	needSandboxOn(t, s.Gateway, "leaves-1")
	m := startHeldModel(t, "hold.txt", travellers(asleep(1)))
	id := begin(m, asleep(1), 4)
	stays := join("stays-1")
	do(t, s.Gateway, 0, "nodes", "drain", "leaves-1", "--deadline", "100ms", "--wait")
	for _, i := range finish(m, id, asleep(1), 4) {
		if i.Node != "stays-1" || i.Attempt != 0 {
			t.Errorf("after the drain an agent is %+v", i)
		}
	}
	if n := countTold(m, unknown); n != 2 {
		t.Errorf("after the drain %d agents were told that the outcome of a call is unknown, want 2", n)
	}

	leaves := join("leaves-2")
	do(t, s.Gateway, 0, "nodes", "drain", "stays-1", "--wait")
	m = startHeldModel(t, "hold.txt", travellers(asleep(2)))
	id = begin(m, asleep(2), many)
	do(t, s.Gateway, 0, "nodes", "undrain", "stays-1")
	busy(m, asleep(2), many)
	var lost, cut int // agents on the node, and those of them with a command
	for _, i := range instances(t, s.Gateway, id, "agent") {
		if i.Node == "leaves-2" {
			lost++
			cut += i.Index % 2
		}
	}
	if n := sleepers(t, asleep(2)); lost != slots || n != cut {
		t.Errorf("of %d agents %d are on the node that leaves, %d of them with a command; %d commands run", many, lost, cut, n)
	}
	held := m.heldNow()
	leaves.Signal(syscall.SIGKILL)
	leaves.Wait()
	processes.Await(t, "the model sees that the node has left", func() bool { return m.heldNow() == held-(lost-cut) })
	for _, i := range finish(m, id, asleep(2), many) {
		if i.Node != "stays-1" || i.Result.Output["text"] != "I am done." {
			t.Errorf("after the kill an agent is %+v", i)
		}
	}
	if n := countTold(m, unknown); n != cut {
		t.Errorf("after the kill %d agents were told that the outcome of a call is unknown, want %d", n, cut)
	}
	if all, want := len(m.Requests()), 4*many+lost-cut; all != want {
		t.Errorf("the model was asked %d times, want %d", all, want)
	}
	stays.Signal(syscall.SIGTERM)
	stays.Wait()
}

// countTold counts the requests whose newest tool results contain a text.
func countTold(m *heldModel, text string) int {
	n := 0
	for _, request := range m.Requests() {
		for _, result := range request.Conversation.NewToolResults() {
			if strings.Contains(result.Text, text) {
				n++
			}
		}
	}
	return n
}
