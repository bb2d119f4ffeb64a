package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
)

// ranks is the command of a member of a gang of three: it tells the others that it runs, waits for them and then for a gate.
const ranks = `
set -e
at=%[1]s/$SWITCHYARD_ATTEMPT
mkdir -p $at
echo "$SWITCHYARD_GANG_RANK/$SWITCHYARD_GANG_SIZE $SWITCHYARD_GANG_HOSTS $SWITCHYARD_GANG_MASTER_ADDR $SWITCHYARD_GANG_MASTER_PORT" | tee $at/$SWITCHYARD_GANG_RANK
while test $(ls $at | wc -l) -lt 3; do sleep 0.05; done
while ! test -e %[1]s/go; do sleep 0.05; done
test $SWITCHYARD_GANG_RANK != 1 || ! test -e %[1]s/fail-$SWITCHYARD_ATTEMPT || exit 7
`

// TestGangStartsAndEndsTogether runs a gang on three of four nodes of their own process. Its members meet; the loss of a node and
// the failure of a member end all, and all are retried.
func TestGangStartsAndEndsTogether(t *testing.T) {
	t.Parallel()
	s, dir := startDev(t, "--nodes", "0"), t.TempDir()
	workers := map[string]*processes.Program{}
	for _, name := range []string{"a", "b", "c", "d"} {
		workers[name] = startWorker(t, s.Temporal, s.Gateway, name, "--host", "127.0.0.1", "--offline-after", "3s", "--metrics-address", "none", "--scratch-dir", t.TempDir())
	}
	id := s.Submit(t, fmt.Sprintf(`
name: meet
tasks:
  train:
    type: shell
    resources: { cores: 0.1 }
    gang: { size: 3, perNode: 1 }
    retry: { maxRetries: 5, backoffMs: 10 }
    spec: { command: %q }
`, fmt.Sprintf(ranks, dir)))
	attempt := func(n int) (nodes []string) {
		processes.Await(t, fmt.Sprintf("attempt %d of all members runs", n), func() bool {
			nodes = nodes[:0]
			for _, member := range instances(t, s.Gateway, id, "train") {
				if member.State == "running" && member.Attempt == n {
					nodes = append(nodes, member.Node)
				}
			}
			return len(nodes) == 3
		})
		return nodes
	}
	nodes := attempt(0)
	if sorted := slices.Sorted(slices.Values(nodes)); len(slices.Compact(sorted)) != 3 {
		t.Errorf("the members are on %v", nodes)
	}
	var ports []string
	for rank := range 3 {
		log := awaitLogText(t, s.Gateway, id, fmt.Sprintf("train[%d]", rank), "127.0.0.1")
		words := strings.Fields(log)
		if want := fmt.Sprintf("%d/3 127.0.0.1,127.0.0.1,127.0.0.1 127.0.0.1", rank); strings.Join(words[:3], " ") != want {
			t.Errorf("rank %d knows %q, want %q", rank, log, want)
		}
		ports = append(ports, words[3])
	}
	if len(slices.Compact(ports)) != 1 || ports[0] == "0" {
		t.Errorf("the members know the ports %v", ports)
	}
	workers[nodes[2]].Signal(syscall.SIGKILL)
	if after := attempt(1); slices.Contains(after, nodes[2]) {
		t.Errorf("after the loss of %s the members are on %v", nodes[2], after)
	}
	open(t, dir, "fail-1")
	open(t, dir, "go")
	if r := s.End(t, id); r.State != "completed" {
		t.Fatalf("the run is %s: %s", r.State, r.Error)
	}
	for n, want := range []int{3, 3, 3, 0} {
		if met, _ := filepath.Glob(filepath.Join(dir, fmt.Sprint(n), "*")); len(met) != want {
			t.Errorf("attempt %d had %d members, want %d", n, len(met), want)
		}
	}
}
