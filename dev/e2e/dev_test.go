package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
)

// devCommand starts a stack on free ports.
var devCommand = []string{"dev", "--port", "0", "--gateway-port", "0", "--ui-port", "0"}

// sharedCommand starts the shared stack of two nodes, local-1 and local-2, and sharedProcess is its process.
var (
	sharedCommand = append(devCommand, "--nodes", "2", "--max-parallel", "24", "--agent-tools", "shell,files,mcp,fleet")
	sharedProcess *processes.Process
)

// shared returns the stack for tests that end no part of it. A task that waits for another event than its own end takes
// no cores there, so that tests do not wait for each other.
func shared(t *testing.T) *processes.Stack {
	t.Helper()
	return processes.StackOf(processes.Borrow(t, sharedProcess))
}

func startDev(t *testing.T, args ...string) *processes.Stack {
	t.Helper()
	return startDevWith(t, binary, nil, args...)
}

// startDevWith starts the stack of a binary that may be of another release, with additional environment variables.
func startDevWith(t *testing.T, binary string, env []string, args ...string) *processes.Stack {
	t.Helper()
	return processes.StackOf(startOther(t, binary, env, append(devCommand[:len(devCommand):len(devCommand)], args...)...))
}

// open creates the file that tasks of a test wait for.
func open(t *testing.T, dir, gate string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, gate), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// gate returns a command that waits until a file exists.
func gate(dir, name string) string {
	return fmt.Sprintf("while ! test -e %s/%s; do sleep 0.05; done", dir, name)
}

func TestDevServes(t *testing.T) {
	t.Parallel()
	if taken, err := net.Listen("tcp", "127.0.0.1:8233"); err == nil { // otherwise another process listens there
		defer taken.Close()
	}
	s := processes.StackOf(start(t, "dev", "--port", "0", "--gateway-port", "0"))
	ui, note, _ := strings.Cut(s.UI, " ")
	if note = strings.TrimSpace(note); note != "(port 8233 is taken)" {
		t.Errorf("the address of the Web UI is %q", s.UI)
	}
	stdout, _ := do(t, s.Gateway, 0, "submit", write(t, "name: hello\ntasks: { greet: { type: shell, spec: { command: echo hello } } }\n"))
	id := strings.TrimSpace(stdout)
	do(t, s.Gateway, 0, "runs", "watch", id)
	if got := s.Get(t, id).Tasks["greet"].Result.Stdout; got != "hello\n" {
		t.Errorf("stdout is %q", got)
	}
	for _, path := range []string{"", "/api/v1/namespaces/default/workflows/" + id} {
		if body := processes.Fetch(t, ui+path); len(body) == 0 {
			t.Errorf("GET %s is empty", path)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Store, "runs", id)); err != nil {
		t.Errorf("the store that dev names does not hold the run: %v", err)
	}
	_, port, _ := strings.Cut(s.Temporal, ":")
	if code, _, stderr := run(t, "dev", "--port", port, "--gateway-port", "0", "--ui-port", "0"); code != 3 || !strings.Contains(stderr, "port "+port+" is taken") {
		t.Errorf("a second stack on the port exits with %d: %s", code, stderr)
	}
	s.Signal(syscall.SIGTERM)
	if code := s.Wait(); code != 0 {
		t.Errorf("dev exits with %d after SIGTERM, want 0", code)
	}
}

// TestStackContinuesAfterKill kills everything in the middle of two runs, and starts it again on the same database. The
// heartbeat time-out of one task far exceeds the test's wait.
func TestStackContinuesAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	s := startDev(t, "--db", db)
	id := s.Submit(t, fmt.Sprintf(`
name: survivor
defaults: { type: shell, resources: { cores: 0 } }
tasks:
  before: { spec: { command: echo once >> %[1]s/before } }
  during: { dependsOn: [before], spec: { command: '%[2]s' }, retry: { backoffMs: 10 } }
  after: { dependsOn: [during], spec: { command: echo after } }
`, dir, gate(dir, "gate")))
	definition, pids := processTree(t, true)
	stdout, _ := do(t, s.Gateway, 0, "submit", write(t, definition), "--heartbeat-timeout", "1h")
	patient := strings.TrimSpace(stdout)
	do(t, s.Gateway, 0, "workflows", "put", write(t, "name: kept\ntasks: { greet: { type: shell, spec: { command: echo hello } } }\n"))
	tree := pids()
	s.AwaitTask(t, id, "during", "running")
	s.Signal(syscall.SIGKILL)
	s.Wait()
	processes.Await(t, "the processes of the task have ended with their node", func() bool { return dead(tree) })

	open(t, dir, "gate")
	s = startDev(t, "--db", db)
	if d := s.End(t, id); d.State != "completed" || d.Tasks["after"].Result.Stdout != "after\n" {
		t.Errorf("the run is %s, the last task printed %q", d.State, d.Tasks["after"].Result.Stdout)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "before")); err != nil || string(text) != "once\n" {
		t.Errorf("the task before ran as %q, %v; want once", text, err)
	}
	processes.Await(t, "the task of the other run has started again", func() bool {
		task := s.Get(t, patient).Tasks["tree"]
		return task.State == "running" && task.Attempt == 1
	})
	do(t, s.Gateway, 0, "submit", "--workflow", "kept", "--watch")
}
