//go:build engines

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/processes"
)

// shownEnvironment is an environment as JSON prints it.
type shownEnvironment struct {
	Name, State, Kind, Error, Size, Node, Run, Task string
	Version                                         int
	Creation                                        *struct{ State, Error string }
}

// removeContainers removes the containers of a run. It also works during the clean-up of a test.
func removeContainers(t *testing.T, id string) {
	t.Helper()
	left, err := exec.Command("docker", "ps", "-aq", "--filter", "label=switchyard.run="+id).Output()
	if ids := strings.Fields(string(left)); err == nil && len(ids) > 0 {
		err = exec.Command("docker", append([]string{"rm", "-f"}, ids...)...).Run()
	}
	if err != nil {
		t.Error(err)
	}
}

// TestEnvironmentOfAMachineIsUsedOnAnotherNode captures a machine while its gateway dies. Tasks on another node find
// the software that was installed in it, a newer version replaces it, and it is deleted once nothing names it any more.
func TestEnvironmentOfAMachineIsUsedOnAnotherNode(t *testing.T) {
	t.Parallel()
	image, store := enginetest.Image(t), filepath.Join(t.TempDir(), "store")
	stack := startDev(t, "--nodes", "0", "--store", store)
	g, url := startGateway(t, stack.Temporal, "127.0.0.1:0", store)
	for _, node := range []string{"env-a", "env-b"} {
		scratch := t.TempDir()
		if err := os.Chmod(scratch, 0o700); err != nil { // required for machines, which outlive the worker
			t.Fatal(err)
		}
		startWorker(t, stack.Temporal, url, node, "--scratch-dir", scratch, "--metrics-address", "none")
	}
	s := &processes.Stack{Program: g, Gateway: url}
	stdout, _ := do(t, url, 0, "vps", "create", "--name", "env-desk", "--image", image, "--node", "env-a", "--env", "LEAK=hunter2", "--wait=5m", "-o", "json")
	desk := fieldOf(t, stdout, "id")
	t.Cleanup(func() { removeContainers(t, desk) }) // for a failed test
	inside := func(machine, line string) string {
		t.Helper()
		code, stdout, stderr := run(t, "runs", "exec", machine, "--gateway", url, "--", "sh", "-c", line)
		if code != 0 {
			t.Errorf("%s exits with %d in %s: %s", line, code, machine, stderr)
		}
		return stdout
	}
	// awaitInside waits until a machine can be entered.
	awaitInside := func(machine string) {
		t.Helper()
		processes.Await(t, "the machine can be entered", func() bool {
			code, _, _ := run(t, "runs", "exec", machine, "--gateway", url, "--", "true")
			return code == 0
		})
	}
	awaitInside(desk)
	inside(desk, "mkdir -p /opt && echo installed > /opt/tool && dd if=/dev/urandom of=/opt/blob bs=1M count=48 2>/dev/null")

	const name = "e2e-tools"
	create := startWith(t, nil, "env", "create", name, "--from", desk, "vps", "--gateway", url)
	create.Line(create.Stderr, "is being created on env-a")
	g.Signal(syscall.SIGKILL)
	g.Wait()
	startGateway(t, stack.Temporal, strings.TrimPrefix(url, "http://"), store)
	if code := create.Wait(); code != 0 || !strings.Contains(create.Stderr.String(), "environment "+name+" (version 1) is ready") {
		t.Fatalf("env create exits with %d: %s", code, create.Stderr.String())
	}
	made := ask[shownEnvironment](t, url, "env", "get", name)
	if made.State != "ready" || made.Kind != "image" || made.Version != 1 || made.Run != desk || made.Task != "vps" || made.Node != "env-a" {
		t.Errorf("it is %+v", made)
	}
	awaitInside(desk) // it still runs

	// read returns what a task on the other node finds in the environment.
	read := func() string {
		t.Helper()
		id := s.Submit(t, fmt.Sprintf(`
name: env-user
tasks:
  read:
    type: container
    constraints: { targetNode: env-b }
    spec: { environment: %s, command: [sh, -c, 'cat /opt/tool; wc -c < /opt/blob; echo "leak=$LEAK"'] }
`, name))
		if code, _, stderr := run(t, "runs", "watch", id, "--gateway", url); code != 0 {
			t.Fatalf("the task that uses it fails: %s", stderr)
		}
		return s.Get(t, id).Tasks["read"].Result.Stdout
	}
	if got := read(); got != "installed\n50331648\nleak=\n" {
		t.Errorf("the task finds %q", got)
	}

	inside(desk, "echo newer > /opt/tool")
	if _, stderr := do(t, url, 0, "env", "create", name, "--from", desk, "--replace"); !strings.Contains(stderr, "(version 2) is ready") {
		t.Errorf("replaced: %s", stderr)
	}
	if got := read(); got != "newer\n50331648\nleak=\n" {
		t.Errorf("the task finds %q after the replacement", got)
	}

	stdout, _ = do(t, url, 0, "vps", "create", "--name", "env-copy", "--environment", name, "--node", "env-b", "--wait=5m", "-o", "json")
	user := fieldOf(t, stdout, "id")
	t.Cleanup(func() { removeContainers(t, user) })
	awaitInside(user)
	if got := inside(user, "cat /opt/tool"); got != "newer\n" {
		t.Errorf("the machine that is made of it has %q", got)
	}
	do(t, url, 0, "vps", "kill", user)
	processes.Await(t, "it is deleted once nothing names it", func() bool {
		code, _, _ := run(t, "env", "delete", name, "--gateway", url)
		return code == 0
	})
	do(t, url, 0, "vps", "kill", desk)
	processes.Await(t, "the machine has ended", func() bool { return s.Get(t, desk).State != "running" })
}
