package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
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

type deadLetter struct {
	Run, Task, Error string
	Attempts         []struct {
		Attempt, ExitCode                   int
		Node, State, StartedAt, CompletedAt string
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
		t.Fatalf("%v: %v\n%s", args, err, tail(stdout))
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
	s := startDev(t, "--nodes", "0")
	if got := ask[list[nodeItem]](t, s.gateway, "nodes", "list"); len(got.Items) != 0 {
		t.Errorf("a stack without nodes has %v", got.Items)
	}
	dir := t.TempDir()
	id := s.submit(t, write(t, fmt.Sprintf(`
name: fleet
tasks:
  here:
    type: shell
    spec: { command: 'echo start >> %[1]s/here; while ! test -e %[1]s/gate; do sleep 0.05; done' }
    constraints: { nodeLabels: [red] }
  there: { type: shell, spec: { command: 'true' }, constraints: { nodeLabels: [blue] } }
  nowhere: { type: shell, spec: { command: 'true' }, constraints: { nodeLabels: [green] } }
  later: { type: shell, spec: { command: 'true' }, dependsOn: [here] }
`, dir)))
	red := startWorker(t, s.temporal, s.gateway, "red-1", "--label", "red", "--capability", "disk=nvme")
	startWorker(t, s.temporal, s.gateway, "blue-1", "--label", "blue")
	var nodes []nodeItem
	eventually(t, "both nodes are listed with their cores", func() bool {
		nodes = ask[list[nodeItem]](t, s.gateway, "nodes", "list", "--state", "active").Items
		return len(nodes) == 2 && nodes[1].Cores.Total > 0
	})
	if n := nodes[1]; nodes[0].Name != "blue-1" || n.Name != "red-1" || !slices.Contains(n.Labels, "red") || n.Capabilities["disk"] != "nvme" ||
		!slices.Contains(n.Executors, "shell") || n.Cores.Total < 1 {
		t.Errorf("the nodes are %+v", nodes)
	}
	eventually(t, "the task on red runs", func() bool { _, err := os.Stat(filepath.Join(dir, "here")); return err == nil })
	eventually(t, "the task on blue has completed", func() bool { return s.peek(t, id).Tasks["there"].State == "completed" })

	for task, want := range map[string]struct{ state, chosen, reason string }{
		"here": {"running", "red-1", "score"}, "there": {"completed", "blue-1", "score"},
		"nowhere": {"queued", "", "green"}, "later": {"pending", "", "waits for here"},
	} {
		var got explanation
		eventually(t, task+" is explained", func() bool {
			got = ask[explanation](t, s.gateway, "runs", "explain", id, task)
			return got.State == want.state && strings.Contains(got.Reason, want.reason) && len(got.Nodes) == 2
		})
		if got.Task != task || got.Chosen != want.chosen {
			t.Errorf("%s is explained by %+v", task, got)
		}
	}
	eventually(t, "each node lacks what nowhere needs", func() bool {
		nodes := ask[explanation](t, s.gateway, "runs", "explain", id, "nowhere").Nodes
		lacking := 0
		for _, n := range nodes {
			if !n.Feasible && strings.Contains(strings.Join(n.Reasons, " "), "green") {
				lacking++
			}
		}
		return lacking == 2 && len(nodes) == 2
	})

	// The drain moves running tasks at its deadline, and the task starts again when the node is back, without spending
	// an attempt.
	do(t, s.gateway, 0, "nodes", "drain", "red-1", "--deadline", "100ms", "--wait", "--reason", "test")
	if n := ask[nodeItem](t, s.gateway, "nodes", "get", "red-1"); n.State != "draining" || !n.Drained {
		t.Errorf("after the drain the node is %+v", n)
	}
	eventually(t, "its next beat tells that nothing runs there", func() bool { return ask[nodeItem](t, s.gateway, "nodes", "get", "red-1").Running == 0 })
	if _, stderr := do(t, s.gateway, 1, "nodes", "remove", "red-1"); !strings.Contains(stderr, "red-1") {
		t.Errorf("remove says %s", stderr)
	}
	do(t, s.gateway, 0, "nodes", "undrain", "red-1")
	eventually(t, "the task starts again", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "here"))
		return strings.Count(string(text), "start") == 2
	})
	if err := os.WriteFile(filepath.Join(dir, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rest of the run completes", func() bool { return s.peek(t, id).Tasks["later"].State == "completed" })
	if got := s.get(t, id).Tasks["here"]; got.State != "completed" || got.Attempt != 0 {
		t.Errorf("the moved task is %+v", got)
	}
	var told []string
	for _, e := range ask[list[eventItem]](t, s.gateway, "runs", "events", id, "--task", "here").Items {
		told = append(told, e.Event)
		if e.At == "" || e.Task != "here" || e.Event == "started" && e.Node != "red-1" {
			t.Errorf("an event is %+v", e)
		}
	}
	// A node that has just come back may hand the task back once more.
	if !regexp.MustCompile("^submitted queued assigned started( reassigned assigned)+ started completed$").MatchString(strings.Join(told, " ")) {
		t.Errorf("the events are %v", told)
	}

	red.signal(syscall.SIGTERM)
	if code := red.wait(); code != 0 {
		t.Errorf("the worker exits with %d", code)
	}
	eventually(t, "the node is offline", func() bool { return ask[nodeItem](t, s.gateway, "nodes", "get", "red-1").State == "offline" })
	do(t, s.gateway, 0, "nodes", "remove", "red-1")
	eventually(t, "the node is forgotten", func() bool { code, _, _ := run(t, "nodes", "get", "red-1", "--gateway", s.gateway); return code == 2 })
	do(t, s.gateway, 0, "runs", "cancel", id)
}

// TestDeadLetters retries a dead letter of an open run and one of an ended run, and purges one.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	dir := t.TempDir()
	id := s.submit(t, write(t, fmt.Sprintf(`
name: letters
tasks:
  first: { type: shell, spec: { command: 'echo once >> %[1]s/first' } }
  broken:
    type: shell
    dependsOn: [first]
    spec: { command: 'echo try >> %[1]s/tries; test -e %[1]s/fixed' }
    retry: { maxRetries: 1, backoffMs: 10 }
  after: { type: shell, dependsOn: [broken], spec: { command: echo after } }
`, dir)))
	do(t, s.gateway, 1, "runs", "watch", id)
	var letters list[deadLetter]
	eventually(t, "the dead letter is listed", func() bool {
		letters = ask[list[deadLetter]](t, s.gateway, "dlq", "list", "--type", "shell", "--node", "local")
		return len(letters.Items) == 1
	})
	d := letters.Items[0]
	if d.Run != id || d.Task != "broken" || d.Error == "" || len(d.Attempts) != 2 || d.Attempts[1].ExitCode != 1 || d.Attempts[1].Node != "local" || d.Attempts[1].StartedAt == "" {
		t.Errorf("the dead letter is %+v", d)
	}
	do(t, s.gateway, 1, "dlq", "retry", id, "first")
	do(t, s.gateway, 2, "dlq", "retry", id, "nothing")
	do(t, s.gateway, 0, "dlq", "retry", id, "broken")
	do(t, s.gateway, 1, "runs", "watch", id) // still failing
	if err := os.WriteFile(filepath.Join(dir, "fixed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, s.gateway, 0, "dlq", "retry", id, "--all")
	do(t, s.gateway, 0, "runs", "watch", id)
	run := s.get(t, id)
	if run.State != "completed" || run.Tasks["after"].Result.Stdout != "after\n" || run.Tasks["broken"].Attempt != 0 {
		t.Errorf("the run is %+v", run)
	}
	if got := ask[list[deadLetter]](t, s.gateway, "dlq", "list", "--run", id); len(got.Items) != 0 {
		t.Errorf("dead letters are left: %+v", got.Items)
	}
	for file, want := range map[string]int{"first": 1, "tries": 5} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || strings.Count(string(text), "\n") != want {
			t.Errorf("%s ran %q, want %d times", file, text, want)
		}
	}
	eventually(t, "the list of runs has the run once", func() bool {
		runs := ask[list[struct{ ID, State string }]](t, s.gateway, "runs", "list", "--workflow", "letters")
		return len(runs.Items) == 1 && runs.Items[0].ID == id
	})

	other := s.submit(t, write(t, "name: doomed\ntasks:\n  a: { type: shell, spec: { command: exit 1 }, retry: { maxRetries: 1, backoffMs: 1 } }\n"))
	do(t, s.gateway, 1, "runs", "watch", other)
	do(t, s.gateway, 0, "dlq", "purge", other, "a")
	if got := ask[list[deadLetter]](t, s.gateway, "dlq", "list", "--run", other); len(got.Items) != 0 {
		t.Errorf("purged dead letters are listed: %+v", got.Items)
	}
	do(t, s.gateway, 1, "dlq", "retry", other, "a")
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
	env := []string{"TEMPORAL_ADDRESS=" + s.temporal}
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
				p := startIn(t, repository, append(slices.Clone(env), "SWITCHYARD_ADDRESS=127.0.0.1:0", "SWITCHYARD_STORE="+store), args...)
				gateway = strings.TrimSpace(strings.TrimPrefix(p.expect(&p.stdout, "Gateway"), "Gateway"))
			}
			env = append(slices.Clone(env), "SWITCHYARD_GATEWAY="+gateway)
		case "worker":
			p := startIn(t, repository, append(slices.Clone(env), spool()), args...)
			p.expect(&p.stdout, "Node")
		default:
			p := startIn(t, repository, env, args...)
			if code := p.wait(); code != 0 {
				t.Fatalf("%s exits with %d: %s", line, code, p.stderr.String())
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
	p := startIn(t, repository, append(slices.Clone(env), "SWITCHYARD_GATEWAY=", spool()), "worker", "--config", file, "--name", "from-file")
	p.expect(&p.stdout, "Node")
	if line := p.expect(&p.stderr, "settings of worker"); !strings.Contains(line, `max-parallel="8 (`+file+`:4)"`) || !strings.Contains(line, "TEMPORAL_ADDRESS") {
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
	s := startDev(t, "--nodes", "0", "--store", store)
	env := []string{"TEMPORAL_ADDRESS=" + s.temporal, "SWITCHYARD_STORE=" + store}
	eventually(t, "the stack leads", func() bool {
		return strings.Contains(string(fetch(t, http.MethodGet, s.gateway+"/metrics", "")), "switchyard_placement_leader 1")
	})
	leader := startIn(t, repository, env, "gateway", "--address", "127.0.0.1:0", "--role", "leader")
	if code := leader.wait(); code != 3 || !strings.Contains(leader.stderr.String(), "--role auto") {
		t.Errorf("a second leader exits with %d: %s", code, leader.stderr.String())
	}
	observer := startIn(t, repository, append(env, "SWITCHYARD_ROLE=observer"), "gateway", "--address", "127.0.0.1:0")
	url := strings.TrimSpace(strings.TrimPrefix(observer.expect(&observer.stdout, "Gateway"), "Gateway"))
	definition := write(t, "name: seen\ntasks:\n  a: { type: shell, spec: { command: 'true' } }\n")
	if _, stderr := do(t, url, 1, "submit", definition); !strings.Contains(stderr, "--role auto") {
		t.Errorf("an observer says %s", stderr)
	}
	id := s.submit(t, definition)
	eventually(t, "an observer shows the run", func() bool { code, _, _ := run(t, "runs", "get", id, "--gateway", url); return code == 0 })
	do(t, s.gateway, 0, "runs", "cancel", id)
}
