package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// stubborn returns a task with a process tree that is hard to end: a child that ignores SIGTERM, one in a session of
// its own, and a double fork. Each writes its PID.
func stubborn(t *testing.T) (definition, dir string) {
	dir = t.TempDir()
	return write(t, fmt.Sprintf(`
name: stubborn
tasks:
  tree:
    type: shell
    spec:
      command: |
        cd %s
        sh -c 'trap "" TERM; echo $$ > ignores.new; mv ignores.new ignores.pid; while :; do sleep 1; done' &
        setsid sh -c 'echo $$ > session.new; mv session.new session.pid; exec sleep 1000' &
        (setsid sh -c 'sh -c "echo \$\$ > forked.new; mv forked.new forked.pid; exec sleep 1000" &' &)
        echo $$ > main.new; mv main.new main.pid
        sleep 1000
  never:
    type: shell
    dependsOn: [tree]
    spec: { command: echo never }
`, dir)), dir
}

// pids waits for the processes of a stubborn tree and returns their PIDs.
func pids(t *testing.T, dir string) []int {
	t.Helper()
	var found []int
	eventually(t, "the task's processes have started", func() bool {
		found = found[:0]
		for _, name := range []string{"main", "ignores", "session", "forked"} {
			text, err := os.ReadFile(filepath.Join(dir, name+".pid"))
			if err != nil {
				return false
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				return false
			}
			found = append(found, pid)
		}
		return true
	})
	return found
}

func dead(pids []int) bool {
	for _, pid := range pids {
		if alive(pid) {
			return false
		}
	}
	return true
}

func TestInterruptCancelsTheRun(t *testing.T) {
	t.Parallel()
	definition, dir := stubborn(t)
	p := start(t, "run", definition, "-o", "json")
	tree := pids(t, dir)
	p.signal(syscall.SIGINT)
	if code := p.wait(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if !dead(tree) {
		t.Error("a process of the task is still alive")
	}
	d := parse(t, p.stdout.String())
	if d.State != "cancelled" || d.Tasks["tree"].State != "cancelled" || d.Tasks["never"].State != "cancelled" {
		t.Errorf("run %s, tree %s, never %s; want all cancelled", d.State, d.Tasks["tree"].State, d.Tasks["never"].State)
	}
}

// TestSecondInterruptKillsWhatStillRuns checks that a second interrupt ends a run whose task ignores SIGTERM as
// cancelled, without a warning.
func TestSecondInterruptKillsWhatStillRuns(t *testing.T) {
	t.Parallel()
	definition, dir := stubborn(t)
	p := start(t, "run", definition, "-o", "json")
	tree := pids(t, dir)
	p.signal(syscall.SIGINT)
	p.expect(&p.stderr, "interrupt again")
	p.signal(syscall.SIGINT)
	if code := p.wait(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if !dead(tree) {
		t.Error("a process of the task is still alive")
	}
	d := parse(t, p.stdout.String())
	if d.State != "cancelled" || d.Tasks["tree"].State != "cancelled" || d.Tasks["never"].State != "cancelled" {
		t.Errorf("run %s, tree %s, never %s; want all cancelled", d.State, d.Tasks["tree"].State, d.Tasks["never"].State)
	}
	if said := p.stderr.String(); strings.Contains(said, "by force") || strings.Contains(said, "level=") {
		t.Errorf("it did not end in order:\n%s", said)
	}
}

// TestForcedEndReachesTheNodes ends by force a run whose task ignores SIGTERM. The run has ended when the command
// returns, and its processes end too.
func TestForcedEndReachesTheNodes(t *testing.T) {
	t.Parallel()
	definition, dir := stubborn(t)
	s := startDev(t)
	id := s.submit(t, definition)
	tree := pids(t, dir)
	s.awaitTask(t, id, "tree", "running")
	_, said := do(t, s.gateway, 0, "runs", "cancel", "--force", id)
	if !strings.Contains(said, "ended by force") || !strings.Contains(said, "nodes are stopping 1 attempts") {
		t.Errorf("it says\n%s", said)
	}
	if state := s.get(t, id).State; state != "failed" {
		t.Errorf("the run is %s", state)
	}
	eventually(t, "the task's processes are dead", func() bool { return dead(tree) })
}

func TestKilledWorkerTakesItsTasksAlong(t *testing.T) {
	t.Parallel()
	definition, dir := stubborn(t)
	p := start(t, "run", definition)
	tree := pids(t, dir)
	p.signal(syscall.SIGKILL)
	p.wait()
	eventually(t, "the task's processes are dead", func() bool { return dead(tree) })
}

func TestCancelFromOutside(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	for _, test := range []struct {
		name   string
		cancel func(t *testing.T, id string)
	}{
		{"temporal signal", func(t *testing.T, id string) {
			if out, err := outputOf(t, tool(t, "temporal"), "workflow", "signal", "--address", s.temporal, "--workflow-id", id, "--name", "cancel"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}},
		{"temporal signal with input", func(t *testing.T, id string) {
			if out, err := outputOf(t, tool(t, "temporal"), "workflow", "signal", "--address", s.temporal, "--workflow-id", id, "--name", "cancel", "--input", `"enough"`); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}},
		{"temporal cancel", func(t *testing.T, id string) {
			if out, err := outputOf(t, tool(t, "temporal"), "workflow", "cancel", "--address", s.temporal, "--workflow-id", id); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}},
		{"runs cancel", func(t *testing.T, id string) {
			if code, _, stderr := run(t, "runs", "cancel", id, "--gateway", s.gateway); code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(test.name, "temporal ") {
				tool(t, "temporal") // checked first, so that no process is left running if the tool is missing
			}
			definition, dir := stubborn(t)
			id := s.submit(t, definition)
			tree := pids(t, dir)
			test.cancel(t, id)
			if code, _, _ := run(t, "runs", "watch", id, "--gateway", s.gateway); code != 1 {
				t.Errorf("watch exits with %d, want 1", code)
			}
			if !dead(tree) {
				t.Error("a process of the task is still alive")
			}
			if d := s.get(t, id); d.State != "cancelled" || d.Tasks["tree"].State != "cancelled" {
				t.Errorf("run %s, task %s; want both cancelled", d.State, d.Tasks["tree"].State)
			}
			code, _, stderr := run(t, "runs", "cancel", id, "--gateway", s.gateway)
			if code != 1 || !strings.Contains(stderr, "already") {
				t.Errorf("a second cancel exits with %d and says %q", code, stderr)
			}
		})
	}
}
