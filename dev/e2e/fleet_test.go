package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
)

// list is a list as JSON prints it.
type list[Item any] struct {
	Items         []Item `json:"items"`
	NextPageToken string `json:"nextPageToken"`
}

type nodeItem struct {
	Name         string            `json:"name"`
	State        string            `json:"state"`
	Reason       string            `json:"reason"`
	Labels       []string          `json:"labels"`
	Capabilities map[string]string `json:"capabilities"`
	Executors    []string          `json:"executors"`
	Running      int               `json:"running"`
	Drained      bool              `json:"drained"`
	Cores        struct{ Total, Free float64 }
	LastBeatAt   string `json:"lastBeatAt"`
}

type eventItem struct {
	At, Task, Event, Node, Detail string
	Attempt                       int
}

type explanation struct {
	Task, State, Chosen, Reason string
	Nodes                       []struct {
		Name     string
		Feasible bool
		Reasons  []string
		Score    float64
	}
}

// ask runs a command on a gateway and decodes its JSON output.
func ask[Answer any](t *testing.T, gateway string, args ...string) Answer {
	t.Helper()
	code, stdout, stderr := run(t, append(args, "--gateway", gateway, "-o", "json")...)
	var a Answer
	if code != 0 {
		t.Fatalf("%v exits with %d: %s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &a); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, processes.Tail(stdout))
	}
	return a
}

// do runs a command on a gateway and checks its exit code.
func do(t *testing.T, gateway string, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := run(t, append(args, "--gateway", gateway)...)
	if code != want {
		t.Errorf("%v exits with %d, want %d: %s%s", args, code, want, stdout, stderr)
	}
	return stdout, stderr
}

// TestFleet lets two workers join, explains where tasks go, drains one worker under load, and removes it.
func TestFleet(t *testing.T) {
	t.Parallel()
	s, dir := shared(t), t.TempDir()
	id := s.Submit(t, fmt.Sprintf(`
name: fleet
defaults: { resources: { cores: 0 } }
tasks:
  here:
    type: shell
    spec: { command: 'echo start >> %[1]s/here; while ! test -e %[1]s/gate; do sleep 0.05; done' }
    constraints: { nodeLabels: [red] }
  there: { type: shell, spec: { command: 'true' }, constraints: { nodeLabels: [blue] } }
  nowhere: { type: shell, spec: { command: 'true' }, constraints: { nodeLabels: [green] } }
  later: { type: shell, spec: { command: 'true' }, dependsOn: [here] }
`, dir))
	red := startWorker(t, s.Temporal, s.Gateway, "red-1", "--label", "red", "--capability", "disk=nvme")
	startWorker(t, s.Temporal, s.Gateway, "blue-1", "--label", "blue")
	var node nodeItem
	processes.Await(t, "both nodes are listed, with their cores", func() bool {
		nodes := ask[list[nodeItem]](t, s.Gateway, "nodes", "list", "--state", "active").Items
		red := slices.IndexFunc(nodes, func(n nodeItem) bool { return n.Name == "red-1" })
		if red < 0 || !slices.ContainsFunc(nodes, func(n nodeItem) bool { return n.Name == "blue-1" }) {
			return false
		}
		node = nodes[red]
		return node.Cores.Total >= 1
	})
	if !slices.Contains(node.Labels, "red") || node.Capabilities["disk"] != "nvme" || !slices.Contains(node.Executors, "shell") {
		t.Errorf("the node is %+v", node)
	}
	processes.Await(t, "the task on red runs", func() bool { _, err := os.Stat(filepath.Join(dir, "here")); return err == nil })
	processes.Await(t, "the task on blue has completed", func() bool { return s.Get(t, id).Tasks["there"].State == "completed" })

	for task, want := range map[string]struct{ state, chosen, reason string }{
		"here": {"running", "red-1", "score"}, "there": {"completed", "blue-1", "score"},
		"nowhere": {"queued", "", "green"}, "later": {"pending", "", "waits for here"},
	} {
		var got explanation
		processes.Await(t, task+" is explained", func() bool {
			got = ask[explanation](t, s.Gateway, "runs", "explain", id, task)
			return got.State == want.state && strings.Contains(got.Reason, want.reason)
		})
		if got.Task != task || got.Chosen != want.chosen {
			t.Errorf("%s is explained by %+v", task, got)
		}
	}
	processes.Await(t, "each node lacks what nowhere needs", func() bool {
		nodes := ask[explanation](t, s.Gateway, "runs", "explain", id, "nowhere").Nodes
		lacking := 0
		for _, n := range nodes {
			if !n.Feasible && strings.Contains(strings.Join(n.Reasons, " "), "green") {
				lacking++
			}
		}
		return lacking == len(nodes) && lacking >= 4
	})

	// The drain moves running tasks at its deadline, and the task starts again when the node is back, without spending
	// an attempt.
	do(t, s.Gateway, 0, "nodes", "drain", "red-1", "--deadline", "100ms", "--wait", "--reason", "test")
	if n := ask[nodeItem](t, s.Gateway, "nodes", "get", "red-1"); n.State != "draining" || !n.Drained {
		t.Errorf("after the drain the node is %+v", n)
	}
	processes.Await(t, "its next beat tells that nothing runs there", func() bool { return ask[nodeItem](t, s.Gateway, "nodes", "get", "red-1").Running == 0 })
	if _, stderr := do(t, s.Gateway, 1, "nodes", "remove", "red-1"); !strings.Contains(stderr, "red-1") {
		t.Errorf("remove says %s", stderr)
	}
	do(t, s.Gateway, 0, "nodes", "undrain", "red-1")
	processes.Await(t, "the task starts again", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "here"))
		return strings.Count(string(text), "start") == 2
	})
	open(t, dir, "gate")
	processes.Await(t, "the rest of the run completes", func() bool { return s.Get(t, id).Tasks["later"].State == "completed" })
	if got := s.Get(t, id).Tasks["here"]; got.State != "completed" || got.Attempt != 0 {
		t.Errorf("the moved task is %+v", got)
	}
	var told []string
	for _, e := range ask[list[eventItem]](t, s.Gateway, "runs", "events", id, "--task", "here").Items {
		told = append(told, e.Event)
		if e.At == "" || e.Task != "here" || e.Event == "started" && e.Node != "red-1" {
			t.Errorf("an event is %+v", e)
		}
	}
	// A node that has just come back may hand the task back once more.
	if !regexp.MustCompile("^submitted queued assigned started( reassigned assigned)+ started completed$").MatchString(strings.Join(told, " ")) {
		t.Errorf("the events are %v", told)
	}

	red.Signal(syscall.SIGTERM)
	if code := red.Wait(); code != 0 {
		t.Errorf("the worker exits with %d", code)
	}
	processes.Await(t, "the node is offline", func() bool { return ask[nodeItem](t, s.Gateway, "nodes", "get", "red-1").State == "offline" })
	do(t, s.Gateway, 0, "nodes", "remove", "red-1")
	processes.Await(t, "the node is forgotten", func() bool { code, _, _ := run(t, "nodes", "get", "red-1", "--gateway", s.Gateway); return code == 2 })
	do(t, s.Gateway, 0, "runs", "cancel", id)
}

// TestReadmeFleet runs the commands of the README section "A fleet", with the gateway started twice.
func TestReadmeFleet(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n## A fleet\n.*?```sh\n(.*?)```").FindSubmatch(text)
	config := regexp.MustCompile("(?s)\n## A fleet\n.*?```yaml\n(.*?)```").FindSubmatch(text)
	if block == nil || config == nil {
		t.Fatal("the section has no commands, or no file of settings")
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	s := startDev(t, "--nodes", "0", "--store", store)
	env := []string{"TEMPORAL_ADDRESS=" + s.Temporal, "HOME=" + dir} // where "last" is kept
	spool := func() string { return "SWITCHYARD_SPOOL_DIR=" + t.TempDir() }
	var gateway string
	ran := 0
	for line := range strings.Lines(string(block[1])) {
		line, _, _ = strings.Cut(line, "#")
		args := strings.Fields(line)
		if len(args) == 0 || args[0] != "switchyard" {
			continue
		}
		ran++
		switch args = args[1:]; args[0] {
		case "gateway":
			for range 2 {
				p := startWith(t, append(slices.Clone(env), "SWITCHYARD_ADDRESS=127.0.0.1:0", "SWITCHYARD_STORE="+store), args...)
				gateway = p.Field("Gateway")
			}
			env = append(slices.Clone(env), "SWITCHYARD_GATEWAY="+gateway)
		case "worker":
			p := startWith(t, append(slices.Clone(env), spool()), args...)
			p.Line(p.Stdout, "Node")
		default:
			p := startWith(t, env, args...)
			if code := p.Wait(); code != 0 {
				t.Fatalf("%s exits with %d: %s", line, code, p.Stderr.String())
			}
		}
	}
	if ran < 15 {
		t.Errorf("only %d commands ran", ran)
	}

	file := filepath.Join(dir, "switchyard.yaml")
	settings := strings.ReplaceAll(string(config[1]), "http://yard:7280", gateway)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startWith(t, append(slices.Clone(env), "SWITCHYARD_GATEWAY=", spool()), "worker", "--config", file, "--name", "from-file")
	p.Line(p.Stdout, "Node")
	if line := p.Line(p.Stderr, "settings of worker"); !strings.Contains(line, `max-parallel="8 (`+file+`:4)"`) || !strings.Contains(line, "TEMPORAL_ADDRESS") {
		t.Errorf("the settings are logged as %s", line)
	}
	n := ask[nodeItem](t, gateway, "nodes", "get", "from-file")
	if !slices.Equal(n.Labels, []string{"fast", "server"}) {
		t.Errorf("the node from a file is %+v", n)
	}
}

// TestRoles checks that a leader refuses to start beside an owner, and that an observer reads but changes nothing.
func TestRoles(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	s := startDev(t, "--nodes", "1", "--store", store)
	env := []string{"TEMPORAL_ADDRESS=" + s.Temporal, "SWITCHYARD_STORE=" + store}
	processes.AwaitText(t, "the stack leads", func() string { return processes.Fetch(t, s.Gateway+"/metrics") },
		func(text string) bool { return strings.Contains(text, "switchyard_placement_leader 1") })
	leader := startWith(t, env, "gateway", "--address", "127.0.0.1:0", "--role", "leader")
	if code := leader.Wait(); code != 3 || !strings.Contains(leader.Stderr.String(), "--role auto") {
		t.Errorf("a second leader exits with %d: %s", code, leader.Stderr.String())
	}
	observer := startWith(t, append(env, "SWITCHYARD_ROLE=observer"), "gateway", "--address", "127.0.0.1:0")
	url := observer.Field("Gateway")
	const definition = "name: seen\ntasks: { a: { type: shell, spec: { command: 'true' } } }\n"
	if _, stderr := do(t, url, 1, "submit", write(t, definition)); !strings.Contains(stderr, "--role auto") {
		t.Errorf("an observer says %s", stderr)
	}
	id := s.Submit(t, definition)
	processes.Await(t, "an observer shows the run", func() bool { code, _, _ := run(t, "runs", "get", id, "--gateway", url); return code == 0 })
}

// TestStrangersTakeNoTasks starts a local run and a worker without a gateway on the Temporal server of a fleet.
func TestStrangersTakeNoTasks(t *testing.T) {
	t.Parallel()
	s := shared(t)
	const definition = "name: stranger\ntasks: { greet: { type: shell, constraints: { targetNode: lost }, spec: { command: echo hello } } }\n"
	stranger := startWith(t, []string{"TEMPORAL_ADDRESS=" + s.Temporal}, "run", write(t, definition))
	if code := stranger.Wait(); code != 3 || !strings.Contains(stranger.Stderr.String(), "--gateway") || !strings.Contains(stranger.Stderr.String(), "another store") {
		t.Errorf("a run with a private store exits with %d", code)
	}
	id := s.Submit(t, definition)
	lost := startWorker(t, s.Temporal, "http://127.0.0.1:1", "lost", "--metrics-address", "none")
	lost.Line(lost.Stderr, "the node gets no tasks until its store can be used")
	read := func(args ...string) func() string {
		return func() string { stdout, _ := do(t, s.Gateway, 0, args...); return stdout }
	}
	processes.AwaitText(t, "the list of nodes says why it gets nothing", read("nodes", "list"), func(text string) bool {
		return strings.Contains(text, "stale") && strings.Contains(text, "http://127.0.0.1:1 cannot be used")
	})
	if task := s.Get(t, id).Tasks["greet"]; task.State != "queued" {
		t.Errorf("the task for it is %s", task.State)
	}
	lost.Signal(syscall.SIGTERM)
	lost.Wait()
	startWorker(t, s.Temporal, s.Gateway, "lost", "--metrics-address", "none")
	if d := s.End(t, id); d.State != "completed" {
		t.Errorf("the run is %s", d.State)
	}
}
