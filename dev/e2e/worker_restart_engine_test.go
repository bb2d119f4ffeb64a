//go:build engines

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/processes"
)

// containers lists the containers of a run.
func (k *keeper) containers(id string) string {
	k.t.Helper()
	out, err := outputOf(k.t, "docker", "ps", "-a", "--no-trunc", "--filter", "label=switchyard.run="+id, "--format", "{{.ID}}")
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// TestRestartOfAWorkerKeepsContainersAndMachines restarts a worker by SIGTERM. A container and a machine stay the same and can be
// steered afterwards, the log of the container has every line once, and a task in a sandbox ends before its worker does.
func TestRestartOfAWorkerKeepsContainersAndMachines(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	image := enginetest.Image(t)
	first := k.join("box")
	stdout, _ := do(t, k.Gateway, 0, "vps", "create", "--name", "machine", "--image", image, "--wait=1m", "-o", "json")
	machine := fieldOf(t, stdout, "id")
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
    spec: { sandbox: true, command: "for i in 1 2 3 4; do echo $i; sleep 1; done" }
`, image))
	for _, task := range []string{"drained", "container", "cancelled"} { // drained ends by itself
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
	if text := first.Stderr.String(); !strings.Contains(text, "it runs in a sandbox") || strings.Contains(text, "task=container") {
		t.Errorf("the worker says %s", text)
	}
	if state := k.stateOf("box"); state != "restarting" {
		t.Errorf("without a worker the node is %s", state)
	}
	if drained := k.Get(t, id).Tasks["drained"]; drained.State != "completed" || drained.Attempt != 0 || drained.Result.Stdout != "1\n2\n3\n4\n" {
		t.Errorf("the task in a sandbox is %+v", drained)
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

// TestKeptContainerEndsBeforeItsTaskStartsElsewhere stops a worker that does not come back, and that keeps a container.
func TestKeptContainerEndsBeforeItsTaskStartsElsewhere(t *testing.T) {
	t.Parallel()
	keptEndsFirst(t, func(files string) string {
		return fmt.Sprintf("{ image: %s, mounts: [{ hostPath: %s, containerPath: %s }], command: *stamps }", enginetest.Image(t), files, files)
	}, "container")
}
