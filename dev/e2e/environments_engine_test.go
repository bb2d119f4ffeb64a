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

	if _, stderr := do(t, url, 1, "env", "create", name, "--from", desk); !strings.Contains(stderr, "exists (version 1)") || !strings.Contains(stderr, "--replace") {
		t.Errorf("one that exists: %s", stderr)
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
	processes.Await(t, "the machine is listed", func() bool {
		stdout, _ := do(t, url, 0, "runs", "list")
		return strings.Contains(stdout, user)
	})
	if _, stderr := do(t, url, 1, "env", "delete", name); !strings.Contains(stderr, "open run "+user+" names it") {
		t.Errorf("one in use is deleted: %s", stderr)
	}
	do(t, url, 0, "vps", "kill", user)
	processes.Await(t, "it is deleted once nothing names it", func() bool {
		code, _, _ := run(t, "env", "delete", name, "--gateway", url)
		return code == 0
	})
	if _, stderr := do(t, url, 2, "env", "get", name); !strings.Contains(stderr, "no environment") {
		t.Errorf("it is there: %s", stderr)
	}
	do(t, url, 0, "vps", "kill", desk)
	processes.Await(t, "the machine has ended", func() bool { return s.Get(t, desk).State != "running" })
}

func TestEnvironmentIsMadeOfAnImageOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	image := enginetest.Image(t)
	s := startDev(t, "--nodes", "1")
	id := s.Submit(t, "name: env-shell\ntasks:\n  work: { type: shell, spec: { command: sleep 600 } }\n")
	processes.Await(t, "the task runs", func() bool { return s.Get(t, id).Tasks["work"].State == "running" })
	for args, says := range map[string]string{
		"--from " + id + " work":               "is of type shell",
		"--from " + id + " wrok":               "did you mean work",
		"--image debian:13 --node never":       `no node "never"`,
		"--vm-image /never.qcow2 --node local": "",
	} {
		code, _, stderr := run(t, append([]string{"env", "create", "e2e-refused", "--gateway", s.Gateway}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
	}
	code, _, stderr := run(t, "env", "create", "e2e-typo", "--image", "switchyard-test/never-was:1", "--gateway", s.Gateway)
	if code != 1 || !strings.Contains(stderr, "was not created") || !strings.Contains(stderr, "never-was") {
		t.Errorf("an image that is none: exit code %d, %s", code, stderr)
	}
	if got := ask[shownEnvironment](t, s.Gateway, "env", "get", "e2e-typo"); got.State != "failed" || got.Error == "" {
		t.Errorf("it is shown as %+v", got)
	}
	do(t, s.Gateway, 0, "env", "delete", "e2e-typo")
	if stdout, _ := do(t, s.Gateway, 0, "env", "create", "e2e-image", "--image", image, "-o", "json"); fieldOf(t, stdout, "state") != "ready" {
		t.Errorf("made of an image: %s", stdout)
	}
	processes.Await(t, "the list has only the one that was not deleted", func() bool {
		stdout, _ := do(t, s.Gateway, 0, "env", "list")
		return strings.Contains(stdout, "e2e-image") && !strings.Contains(stdout, "e2e-typo")
	})
	do(t, s.Gateway, 0, "env", "delete", "e2e-image")
	do(t, s.Gateway, 0, "runs", "cancel", id)
}
