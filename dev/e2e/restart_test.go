package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRestartAfterKillGoesOnAtOnce kills a stack while a task runs whose heartbeat time-out far exceeds the test's
// wait. The next stack on the machine detects that the task has ended and starts it again.
func TestRestartAfterKillGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "dev.db")
	s := startDev(t, "--db", db)
	definition, dir := stubborn(t)
	code, stdout, stderr := run(t, "submit", definition, "--gateway", s.gateway, "--heartbeat-timeout", "1h")
	if code != 0 {
		t.Fatalf("submit exits with %d: %s", code, stderr)
	}
	id := strings.TrimSpace(stdout)
	tree := pids(t, dir)
	s.signal(syscall.SIGKILL)
	s.wait()
	s = startDev(t, "--db", db)
	eventually(t, "the task runs again", func() bool {
		task := s.get(t, id).Tasks["tree"]
		return task.State == "running" && task.Attempt == 1
	})
	if !dead(tree) {
		t.Error("a process of the first attempt is still alive")
	}
	if code, _, stderr := run(t, "runs", "cancel", id, "--force", "--gateway", s.gateway); code != 0 {
		t.Errorf("cancel --force exits with %d: %s", code, stderr)
	}
	if d := s.get(t, id); d.State != "failed" || d.Reason != "terminated" || !strings.Contains(d.Error, "ended by force") {
		t.Errorf("the run is %s, %s: %s", d.State, d.Reason, d.Error)
	}
}

// TestStrangersTakeNoTasks starts a local run and a worker without a gateway on the Temporal server of a fleet.
func TestStrangersTakeNoTasks(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--nodes", "0")
	hello := write(t, "name: hello\ntasks:\n  greet:\n    type: shell\n    spec: { command: echo hello }\n")
	stranger := startIn(t, repository, []string{"TEMPORAL_ADDRESS=" + s.temporal}, "run", hello)
	if code := stranger.wait(); code != 3 || !strings.Contains(stranger.stderr.String(), "--gateway") || !strings.Contains(stranger.stderr.String(), "another store") {
		t.Errorf("a run with a private store exits with %d", code)
	}
	lost := startWorker(t, s.temporal, "http://127.0.0.1:1", "lost")
	lost.expect(&lost.stderr, "the node gets no tasks until its store can be used")
	eventually(t, "the list of nodes says why it gets nothing", func() bool {
		code, stdout, _ := run(t, "nodes", "list", "--gateway", s.gateway)
		return code == 0 && strings.Contains(stdout, "stale") && strings.Contains(stdout, "http://127.0.0.1:1 cannot be used")
	})
	id := s.submit(t, hello)
	startWorker(t, s.temporal, s.gateway, "found")
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", s.gateway); code != 0 {
		t.Fatalf("watch exits with %d: %s", code, stderr)
	}
	if node := s.get(t, id).Tasks["greet"].Node; node != "found" {
		t.Errorf("it ran on %s", node)
	}
}
