package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// TestWorkerKeepsItsOutputWithTheGateway runs tasks on a worker without a store, whose output far exceeds what fits into
// the history, and scrapes the gateway and the worker.
func TestWorkerKeepsItsOutputWithTheGateway(t *testing.T) {
	t.Parallel()
	s := shared(t)
	w := startWorker(t, s.Temporal, s.Gateway, "box", "--label", "box", "--metrics-address", "127.0.0.1:0")
	if got := w.Field("Store"); !strings.Contains(got, s.Gateway) {
		t.Errorf("the worker's store is %q, want the gateway %s", got, s.Gateway)
	}
	id := s.Submit(t, `
name: far
defaults: { type: shell, constraints: { nodeLabels: [box] } }
tasks:
  make:
    spec:
      command: |
        for i in $(seq 5000); do echo "line $i of the log"; done
        awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 300000; i++) printf "x"; printf "\"}" }' > "$SWITCHYARD_OUTPUT"
  use:
    dependsOn: [make]
    condition: size(parent.make.output.text) == 300000
    spec: { command: echo used }
`)
	s.End(t, id)
	stdout, _ := do(t, s.Gateway, 0, "runs", "get", id, "-o", "json")
	d := processes.ParseRun(t, stdout)
	if got := d.Tasks["use"].Result.Stdout; got != "used\n" {
		t.Errorf("the task with the large input printed %q; it is %+v", got, d.Tasks["use"])
	}
	if text, _ := d.Tasks["make"].Result.Output["text"].(string); len(text) != 300_000 {
		t.Errorf("the output has %d bytes", len(text))
	}
	awaitLog(t, s.Gateway, id, "make", "has 5000 lines", func(log string) bool { return strings.Count(log, "of the log") == 5000 })
	for url, wanted := range map[string][]string{
		s.Gateway + "/metrics": {
			"switchyard_placement_leader 1",
			"switchyard_build_info{",
			`switchyard_placement_decisions_total{type="shell"} `,
			`switchyard_task_queue_seconds_count{type="shell"} `,
			`switchyard_nodes{state="active"} `,
			`switchyard_node_heartbeat_age_seconds{node="box"} `,
			`switchyard_node_slots{kind="used",node="box"} 0`,
			`switchyard_node_cores{kind="reserved",node="box"} 0`,
			"temporal_request_total{",
		},
		w.Field("Metrics"): {
			`switchyard_worker_claims_total{node="box"} `,
			`switchyard_task_attempts_total{state="completed",type="shell"} 2`,
			`switchyard_task_run_seconds_count{state="completed",type="shell"} 2`,
			"temporal_request_total{",
		},
	} {
		for _, want := range wanted {
			// The run may end before the node has counted its attempts.
			processes.AwaitText(t, "a scrape has "+want, func() string { return processes.Fetch(t, url) },
				func(text string) bool { return strings.Contains(text, want) })
		}
	}
}

// startGateway starts a gateway at an address and returns its URL. Port 0 means a free port.
func startGateway(t *testing.T, temporal, address, store string) (*processes.Program, string) {
	t.Helper()
	g := startWith(t, []string{"TEMPORAL_ADDRESS=" + temporal}, "gateway", "--address", address, "--store", store)
	return g, g.Field("Gateway")
}

func TestLogIsWholeAfterTheGatewayWasAway(t *testing.T) {
	t.Parallel()
	s, dir := shared(t), t.TempDir()
	g, url := startGateway(t, s.Temporal, "127.0.0.1:0", s.Store)
	startWorker(t, s.Temporal, url, "chatty", "--label", "chatty", "--metrics-address", "none")
	// The task prints until the test has seen enough.
	id := s.Submit(t, fmt.Sprintf(`
name: chatter
tasks:
  talk:
    type: shell
    constraints: { nodeLabels: [chatty] }
    resources: { cores: 0 }
    spec:
      command: |
        i=0
        while ! test -e %[1]s/stop; do
          i=$((i+1)); echo "line $i"; echo $i > %[1]s/printed.new; mv %[1]s/printed.new %[1]s/printed; sleep 0.02
        done
`, dir))
	printed := func() (n int) {
		text, _ := os.ReadFile(filepath.Join(dir, "printed"))
		_, _ = fmt.Sscan(string(text), &n)
		return n
	}
	awaitLogText(t, url, id, "talk", "line 10\n") // while the task runs
	g.Signal(syscall.SIGKILL)
	g.Wait()
	before := printed()
	processes.Await(t, "the task continues without the gateway", func() bool { return printed() > before+50 })
	_, _ = startGateway(t, s.Temporal, strings.TrimPrefix(url, "http://"), s.Store)
	awaitLogText(t, url, id, "talk", fmt.Sprintf("line %d\n", before+50)) // printed meanwhile
	open(t, dir, "stop")
	if d := s.End(t, id); d.State != "completed" {
		t.Errorf("the run is %s", d.State)
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
