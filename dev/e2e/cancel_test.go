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
)

// processTree returns the definition of a run whose task is a tree of processes that is hard to end: its shell, one in a
// session of its own, and one that was forked twice. A stubborn tree also has one that ignores SIGTERM. pids waits for
// the processes and returns their PIDs.
func processTree(t *testing.T, stubborn bool) (definition string, pids func() []int) {
	dir := t.TempDir()
	names, ignores := []string{"main", "session", "forked"}, ""
	if stubborn {
		names = append(names, "ignores")
		ignores = `sh -c 'trap "" TERM; echo $$ > ignores.new; mv ignores.new ignores.pid; while :; do sleep 1; done' &`
	}
	definition = fmt.Sprintf(`
name: tree
defaults: { type: shell, resources: { cores: 0 } }
tasks:
  tree:
    spec:
      command: |
        cd %s
        %s
        setsid sh -c 'echo $$ > session.new; mv session.new session.pid; exec sleep 1000' &
        (setsid sh -c 'sh -c "echo \$\$ > forked.new; mv forked.new forked.pid; exec sleep 1000" &' &)
        echo $$ > main.new; mv main.new main.pid
        sleep 1000
  never: { dependsOn: [tree], spec: { command: echo never } }
`, dir, ignores)
	return definition, func() (found []int) {
		t.Helper()
		processes.Await(t, "the task's processes have started", func() bool {
			found = nil
			for _, name := range names {
				text, err := os.ReadFile(filepath.Join(dir, name+".pid"))
				pid, invalid := strconv.Atoi(strings.TrimSpace(string(text)))
				if err != nil || invalid != nil {
					return false
				}
				found = append(found, pid)
			}
			return true
		})
		return found
	}
}

func dead(pids []int) bool { return !slices.ContainsFunc(pids, alive) }

// TestInterruptCancelsTheRun interrupts a local run whose task ignores SIGTERM, twice.
func TestInterruptCancelsTheRun(t *testing.T) {
	t.Parallel()
	definition, pids := processTree(t, true)
	p := start(t, "run", write(t, definition), "-o", "json")
	tree := pids()
	p.Signal(syscall.SIGINT)
	p.Line(p.Stderr, "interrupt again")
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if !dead(tree) {
		t.Error("a process of the task is still alive")
	}
	d := processes.ParseRun(t, p.Stdout.String())
	if d.State != "cancelled" || d.Tasks["tree"].State != "cancelled" || d.Tasks["never"].State != "cancelled" {
		t.Errorf("run %s, tree %s, never %s; want all cancelled", d.State, d.Tasks["tree"].State, d.Tasks["never"].State)
	}
	if said := p.Stderr.String(); strings.Contains(said, "by force") || strings.Contains(said, "level=") {
		t.Errorf("it did not end in order:\n%s", said)
	}
}

// TestForcedEndReachesTheNodes ends a run by force. The run has ended when the command returns, and its processes end
// too.
func TestForcedEndReachesTheNodes(t *testing.T) {
	t.Parallel()
	s := shared(t)
	definition, pids := processTree(t, false)
	id := s.Submit(t, definition)
	tree := pids()
	s.AwaitTask(t, id, "tree", "running")
	_, said := do(t, s.Gateway, 0, "runs", "cancel", "--force", id)
	if !strings.Contains(said, "ended by force") || !strings.Contains(said, "nodes are stopping 1 attempts") {
		t.Errorf("it says\n%s", said)
	}
	if d := s.Get(t, id); d.State != "failed" || d.Reason != "terminated" || !strings.Contains(d.Error, "ended by force") {
		t.Errorf("the run is %s, %s: %s", d.State, d.Reason, d.Error)
	}
	processes.Await(t, "the task's processes are dead", func() bool { return dead(tree) })
}
