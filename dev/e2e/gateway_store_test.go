package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// startWorker starts a worker that knows only two addresses of the fleet, and waits until it is up.
func startWorker(t *testing.T, temporal, gateway, name string, args ...string) *program {
	t.Helper()
	p := startIn(t, repository, []string{"TEMPORAL_ADDRESS=" + temporal, "SWITCHYARD_GATEWAY=" + gateway},
		append([]string{"worker", "--name", name, "--spool-dir", filepath.Join(t.TempDir(), "spool")}, args...)...)
	p.expect(&p.stdout, "Store")
	return p
}

// logOf returns the log of a task of a run.
func logOf(t *testing.T, gateway, id, task string) string {
	t.Helper()
	code, stdout, stderr := run(t, "runs", "logs", id, task, "--gateway", gateway)
	if code != 0 {
		t.Fatalf("runs logs exits with %d: %s", code, stderr)
	}
	return stdout
}

// awaitLog waits until the log of a task meets a condition, and returns the log. A node whose store was slow may deliver
// the last lines after the end of the run.
func awaitLog(t *testing.T, gateway, id, task, what string, holds func(log string) bool) string {
	t.Helper()
	return awaitText(t, "the log of "+task+" "+what, func() string { return logOf(t, gateway, id, task) }, holds)
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

func TestWorkerKeepsItsOutputWithTheGateway(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--nodes", "0")
	w := startWorker(t, s.temporal, s.gateway, "box")
	if line := w.expect(&w.stdout, "Store"); !strings.Contains(line, s.gateway) {
		t.Errorf("the worker's store is %q, want the gateway %s", line, s.gateway)
	}
	// The output far exceeds what fits into the history.
	id := s.submit(t, write(t, `
name: far
tasks:
  make:
    type: shell
    spec:
      command: |
        for i in $(seq 5000); do echo "line $i of the log"; done
        awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 300000; i++) printf "x"; printf "\"}" }' > "$SWITCHYARD_OUTPUT"
  use:
    type: shell
    dependsOn: [make]
    condition: size(parent.make.output.text) == 300000
    spec: { command: echo used }
`))
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", s.gateway); code != 0 {
		t.Fatalf("watch exits with %d: %s", code, stderr)
	}
	d := s.get(t, id)
	if got := d.Tasks["use"].Result.Stdout; got != "used\n" {
		t.Errorf("the task with the large input printed %q; it is %+v", got, d.Tasks["use"])
	}
	if text, _ := d.Tasks["make"].Result.Output["text"].(string); len(text) != 300_000 {
		t.Errorf("the output has %d bytes", len(text))
	}
	awaitLog(t, s.gateway, id, "make", "has 5000 lines", func(log string) bool { return strings.Count(log, "of the log") == 5000 })
}

// startGateway starts a gateway at an address and returns its URL. Port 0 means a free port.
func startGateway(t *testing.T, temporal, address, store string) (*program, string) {
	t.Helper()
	g := startIn(t, repository, []string{"TEMPORAL_ADDRESS=" + temporal}, "gateway", "--address", address, "--store", store)
	return g, strings.TrimSpace(strings.TrimPrefix(g.expect(&g.stdout, "Gateway"), "Gateway"))
}

func TestLogIsWholeAfterTheGatewayWasAway(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	stack := startDev(t, "--nodes", "0", "--store", store)
	g, url := startGateway(t, stack.temporal, "127.0.0.1:0", store)
	startWorker(t, stack.temporal, url, "box")
	s := &devStack{program: g, gateway: url}
	// The task prints until the test has seen enough.
	id := s.submit(t, write(t, fmt.Sprintf(`
name: chatter
tasks:
  talk:
    type: shell
    spec:
      command: |
        i=0
        while ! test -e %[1]s/stop; do
          i=$((i+1)); echo "line $i"; echo $i > %[1]s/printed.new; mv %[1]s/printed.new %[1]s/printed; sleep 0.02
        done
`, dir)))
	printed := func() (n int) {
		text, _ := os.ReadFile(filepath.Join(dir, "printed"))
		_, _ = fmt.Sscan(string(text), &n)
		return n
	}
	awaitLogText(t, url, id, "talk", "line 10\n") // while the task runs
	g.signal(syscall.SIGKILL)
	g.wait()
	before := printed()
	eventually(t, "the task continues without the gateway", func() bool { return printed() > before+100 })
	_, _ = startGateway(t, stack.temporal, strings.TrimPrefix(url, "http://"), store)
	awaitLogText(t, url, id, "talk", fmt.Sprintf("line %d\n", before+100)) // printed meanwhile
	if err := os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", url); code != 0 {
		t.Fatalf("watch exits with %d: %s", code, stderr)
	}
	n := printed()
	log := awaitLogText(t, url, id, "talk", fmt.Sprintf("line %d\n", n))
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	for i, line := range lines {
		if want := fmt.Sprintf("line %d", i+1); !strings.HasSuffix(line, want) {
			t.Fatalf("line %d of the log is %q, want %q", i+1, line, want)
		}
	}
	if len(lines) != n {
		t.Errorf("the log has %d lines; the task printed %d", len(lines), n)
	}
}

// TestLogAndResultOutliveAnOutageOfTheStore checks that a node whose store is a folder also spools: a task that ends
// while the folder is unavailable loses neither its log nor its result.
func TestLogAndResultOutliveAnOutageOfTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	s := startDev(t, "--db", db)
	id := s.submit(t, write(t, fmt.Sprintf(`
name: outage
tasks:
  ends:
    type: shell
    spec: { command: 'touch %[1]s/started; while ! test -e %[1]s/gate; do sleep 0.05; done; echo the end' }
`, dir)))
	there := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	eventually(t, "the task runs", func() bool { return there("started") })
	if err := os.Rename(db+".store", db+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log and the result are in the spool", func() bool {
		files, _ := filepath.Glob(db + ".spool/[0-9a-f]*")
		return len(files) >= 2
	})
	if err := os.Rename(db+".away", db+".store"); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", s.gateway); code != 0 {
		t.Fatalf("watch exits with %d: %s", code, stderr)
	}
	awaitLogText(t, s.gateway, id, "ends", "the end\n")
	if stderr := s.stderr.String(); strings.Contains(stderr, "was not recorded") || strings.Contains(stderr, "was not stored") {
		t.Errorf("the node lost something:\n%s", tail(stderr))
	}
}

// TestStoreOfAnotherClusterIsRefused starts a second deployment on the store of a first one.
func TestStoreOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startDev(t, "--db", filepath.Join(dir, "first.db"), "--nodes", "0")
	second := startIn(t, repository, nil, "dev", "--db", filepath.Join(dir, "second.db"), "--store", filepath.Join(dir, "first.db.store"),
		"--nodes", "0", "--port", "0", "--gateway-port", "0", "--ui-port", "0")
	if code := second.wait(); code != 3 || !strings.Contains(second.stderr.String(), "the store belongs to another cluster") {
		t.Errorf("it exits with %d: %s", code, second.stderr.String())
	}
}
