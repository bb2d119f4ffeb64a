package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/dev/processes"
)

// startWorker starts a worker that knows only two addresses of the fleet, and waits until it is up.
func startWorker(t *testing.T, temporal, gateway, name string, args ...string) *processes.Program {
	t.Helper()
	p := startWith(t, []string{"TEMPORAL_ADDRESS=" + temporal, "SWITCHYARD_GATEWAY=" + gateway},
		append([]string{"worker", "--name", name, "--spool-dir", filepath.Join(t.TempDir(), "spool")}, args...)...)
	p.Line(p.Stdout, "Store")
	return p
}

// logOf returns the log of a task of a run.
func logOf(t *testing.T, gateway, id, task string) string {
	t.Helper()
	stdout, _ := do(t, gateway, 0, "runs", "logs", id, task)
	return stdout
}

// awaitLog waits until the log of a task meets a condition, and returns the log. A node whose store was slow may deliver
// the last lines after the end of the run.
func awaitLog(t *testing.T, gateway, id, task, what string, holds func(log string) bool) string {
	t.Helper()
	return processes.AwaitText(t, "the log of "+task+" "+what, func() string { return logOf(t, gateway, id, task) }, holds)
}

// awaitLogText waits until the log of a task contains a text, and returns the log.
func awaitLogText(t *testing.T, gateway, id, task, text string) string {
	t.Helper()
	return awaitLog(t, gateway, id, task, fmt.Sprintf("contains %q", text), func(log string) bool { return strings.Contains(log, text) })
}

// awaitWholeLog waits until the log of a task is as wanted.
func awaitWholeLog(t *testing.T, gateway, id, task, want string) {
	t.Helper()
	awaitLog(t, gateway, id, task, fmt.Sprintf("is %.200q", want), func(log string) bool { return log == want })
}

// startGateway starts a gateway at an address and returns its URL. Port 0 means a free port.
func startGateway(t *testing.T, temporal, address, store string) (*processes.Program, string) {
	t.Helper()
	g := startWith(t, []string{"TEMPORAL_ADDRESS=" + temporal}, "gateway", "--address", address, "--store", store)
	return g, g.Field("Gateway")
}

// TestLogAndResultOutliveAnOutageOfTheStore checks that a node whose store is a folder also spools: a task that ends
// while the folder is unavailable loses neither its log nor its result.
func TestLogAndResultOutliveAnOutageOfTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	s := startDev(t, "--db", db)
	id := s.Submit(t, fmt.Sprintf(`
name: outage
tasks: { ends: { type: shell, spec: { command: '%s; echo the end' } } }
`, gate(dir, "gate")))
	s.AwaitTask(t, id, "ends", "running")
	if err := os.Rename(db+".store", db+".away"); err != nil {
		t.Fatal(err)
	}
	open(t, dir, "gate")
	processes.Await(t, "the log and the result are in the spool", func() bool {
		files, _ := filepath.Glob(db + ".spool/[0-9a-f]*")
		return len(files) >= 2
	})
	if err := os.Rename(db+".away", db+".store"); err != nil {
		t.Fatal(err)
	}
	if d := s.End(t, id); d.State != "completed" {
		t.Errorf("the run is %s", d.State)
	}
	awaitLogText(t, s.Gateway, id, "ends", "the end\n")
	if stderr := s.Stderr.String(); strings.Contains(stderr, "was not recorded") || strings.Contains(stderr, "was not stored") {
		t.Errorf("the node lost something:\n%s", processes.Tail(stderr))
	}
}

// TestStoreOfAnotherClusterIsRefused starts a second deployment on the store of the shared one.
func TestStoreOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	second := start(t, append(devCommand[:len(devCommand):len(devCommand)], "--store", shared(t).Store)...)
	if code := second.Wait(); code != 3 || !strings.Contains(second.Stderr.String(), "the store belongs to another cluster") {
		t.Errorf("it exits with %d: %s", code, second.Stderr.String())
	}
}
