//go:build engines

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/processes"
)

// keeper starts workers that leave what can run on to the next worker of their node.
type keeper struct {
	*processes.Stack
	t   *testing.T
	dir string // of the state of the workers
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	return &keeper{startDev(t, "--nodes", "0"), t, t.TempDir()}
}

func (k *keeper) join(name string) *processes.Program {
	k.t.Helper()
	scratch := filepath.Join(k.dir, name)
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		k.t.Fatal(err)
	}
	return startWorker(k.t, k.Temporal, k.Gateway, name, "--on-stop", "keep", "--scratch-dir", scratch, "--offline-after", "3s",
		"--metrics-address", "none", "--allow-mount", k.dir)
}

// stateOf returns the state of a node.
func (k *keeper) stateOf(node string) string {
	k.t.Helper()
	stdout, _ := do(k.t, k.Gateway, 0, "nodes", "get", node, "-o", "json")
	var n struct{ State string }
	if err := json.Unmarshal([]byte(stdout), &n); err != nil {
		k.t.Fatal(err)
	}
	return n.State
}

// containers lists the containers of a run.
func (k *keeper) containers(id string) string {
	k.t.Helper()
	out, err := outputOf(k.t, "docker", "ps", "-a", "--no-trunc", "--filter", "label=switchyard.run="+id, "--format", "{{.ID}}")
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// numbered returns the numbered output of a program.
func numbered(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintln(&text, "line", i)
	}
	return text.String()
}

// TestRestartOfAWorkerKeepsContainersAndMachines restarts a worker by SIGTERM. A container and a machine stay the same and can be
// steered afterwards, the log of the container has every line once, and a shell task ends before its worker does.
func TestRestartOfAWorkerKeepsContainersAndMachines(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	image := enginetest.Image(t)
	first := k.join("box")
	id := k.Submit(t, fmt.Sprintf(`
name: kept
tasks:
  container:
    type: container
    resources: { cores: 0.1 }
    spec:
      image: %[1]s
      command: 'i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); usleep 50000; done; while ! test -e /tmp/go; do usleep 50000; done'
  cancelled:
    type: container
    resources: { cores: 0.1 }
    spec: { image: %[1]s, command: "exec sleep 1000" }
  drained:
    type: shell
    resources: { cores: 0.1 }
    spec: { command: "for i in 1 2 3 4; do echo $i; sleep 1; done" }
`, image))
	stdout, _ := do(t, k.Gateway, 0, "vps", "create", "--name", "machine", "--image", image, "--wait=1m", "-o", "json")
	machine := fieldOf(t, stdout, "id")
	for _, task := range []string{"container", "cancelled", "drained"} {
		k.AwaitTask(t, id, task, "running")
	}
	awaitLogText(t, k.Gateway, id, "container", "line 9\n")
	before, of := k.containers(id), k.containers(machine)
	if strings.Count(before, "\n") < 1 || of == "" {
		t.Fatalf("the containers are %q and %q", before, of)
	}

	first.Signal(syscall.SIGTERM)
	if code := first.Wait(); code != 0 {
		t.Errorf("the worker exits with %d: %s", code, first.Stderr)
	}
	if text := first.Stderr.String(); !strings.Contains(text, "it has no keeper (type shell)") || strings.Contains(text, "task=container") {
		t.Errorf("the worker says %s", text)
	}
	if state := k.stateOf("box"); state != "restarting" {
		t.Errorf("without a worker the node is %s", state)
	}
	if drained := k.Get(t, id).Tasks["drained"]; drained.State != "completed" || drained.Attempt != 0 || drained.Result.Stdout != "1\n2\n3\n4\n" {
		t.Errorf("the shell task is %+v", drained)
	}
	k.join("box")
	if state := k.stateOf("box"); state != "active" {
		t.Errorf("with its next worker the node is %s", state)
	}
	if now := k.containers(id); now != before {
		t.Errorf("the containers are %q, before %q", now, before)
	}
	if now := k.containers(machine); now != of {
		t.Errorf("the machine is %q, before %q", now, of)
	}
	do(t, k.Gateway, 0, "runs", "pause", id, "container")
	k.AwaitTask(t, id, "container", "paused")
	do(t, k.Gateway, 0, "runs", "resume", id, "container")
	k.AwaitTask(t, id, "container", "running")
	do(t, k.Gateway, 0, "runs", "cancel", id, "cancelled")
	k.AwaitTask(t, id, "cancelled", "cancelled")
	for _, command := range [][]string{{id, "container", "--", "touch", "/tmp/go"}, {machine, "--", "true"}} {
		if code, _, stderr := run(t, append([]string{"runs", "exec", "--gateway", k.Gateway}, command...)...); code != 0 {
			t.Errorf("exec of %v exits with %d: %s", command, code, stderr)
		}
	}
	processes.Await(t, "the container has ended", func() bool { return k.Get(t, id).Tasks["container"].State == "completed" })
	if attempt := k.Get(t, id).Tasks["container"].Attempt; attempt != 0 {
		t.Errorf("it ended as attempt %d", attempt)
	}
	awaitWholeLog(t, k.Gateway, id, "container", numbered(300))
	do(t, k.Gateway, 0, "vps", "stop", machine)
}

// TestKeptContainerEndsBeforeItsTaskStartsElsewhere stops a worker that does not come back. Its container has ended when
// another node starts the task.
func TestKeptContainerEndsBeforeItsTaskStartsElsewhere(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	first := k.join("first")
	files := filepath.Join(k.dir, "files")
	if err := os.Mkdir(files, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(files, 0o777); err != nil {
		t.Fatal(err)
	}
	// Every attempt writes the uptime of the machine into a file of its own.
	id := k.Submit(t, fmt.Sprintf(`
name: alone
tasks:
  container:
    type: container
    heartbeatTimeout: 5s
    retry: { maxRetries: 2, backoffMs: 10 }
    spec:
      image: %s
      mounts: [{ hostPath: %s, containerPath: /files }]
      command: 'while true; do cut -d " " -f 1 /proc/uptime >>/files/$SWITCHYARD_ATTEMPT; test $SWITCHYARD_ATTEMPT = 0 || exit 0; usleep 20000; done'
`, enginetest.Image(t), files))
	k.AwaitTask(t, id, "container", "running")
	k.join("second")
	first.Signal(syscall.SIGTERM)
	first.Wait()
	if state := k.stateOf("first"); state != "restarting" {
		t.Errorf("without a worker the node is %s", state)
	}
	k.AwaitRun(t, id, "completed")
	uptimes := func(attempt string) (all []float64) {
		text, err := os.ReadFile(filepath.Join(files, attempt))
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(text)) {
			at, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, at)
		}
		return all
	}
	one, two := uptimes("0"), uptimes("1")
	if last := one[len(one)-1]; last >= two[0] {
		t.Errorf("the first attempt ran until %.2f, the second one began at %.2f", last, two[0])
	}
	processes.Await(t, "the node is offline", func() bool { return k.stateOf("first") == "offline" })
}
