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

// numbered returns the numbered output of a program.
func numbered(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintln(&text, "line", i)
	}
	return text.String()
}

// TestRestartOfAWorkerKeepsShellTasks restarts a worker by SIGTERM, twice. A shell task stays the same process, can be paused and
// entered afterwards, has its whole log and its own exit code, and ends with a worker that is killed.
func TestRestartOfAWorkerKeepsShellTasks(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	worker := k.join("box")
	id := k.Submit(t, fmt.Sprintf(`
name: kept
tasks:
  counts:
    type: shell
    retry: { maxRetries: 0 }
    resources: { cores: 0.1 }
    spec: { command: 'i=0; while [ $i -lt 100 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; until [ -e %s ]; do sleep 0.05; done; echo "{\"pid\": $$}" >$SWITCHYARD_OUTPUT; exit 3' }
  paused:
    type: shell
    resources: { cores: 0.1 }
    spec: { command: 'echo $$; exec sleep 1000' }
  killed:
    type: shell
    retry: { maxRetries: 0 }
    resources: { cores: 0.1 }
    spec: { command: 'echo $$; sleep 1000 & exec sleep 1000' }
`, filepath.Join(k.dir, "go")))
	for _, task := range []string{"counts", "paused", "killed"} {
		k.AwaitTask(t, id, task, "running")
	}
	awaitLogText(t, k.Gateway, id, "counts", "line 9\n")
	pid := strings.TrimSpace(awaitLogText(t, k.Gateway, id, "paused", "\n"))
	killed := strings.TrimSpace(awaitLogText(t, k.Gateway, id, "killed", "\n"))
	do(t, k.Gateway, 0, "runs", "pause", id, "paused")
	k.AwaitTask(t, id, "paused", "paused")
	for range 2 {
		worker.Signal(syscall.SIGTERM)
		if code := worker.Wait(); code != 0 {
			t.Fatalf("the worker exits with %d: %s", code, worker.Stderr)
		}
		if text := worker.Stderr.String(); strings.Contains(text, "not kept") || strings.Contains(text, "ERROR") {
			t.Errorf("the worker says %s", text)
		}
		if state := k.stateOf("box"); state != "restarting" {
			t.Errorf("without a worker the node is %s", state)
		}
		worker = k.join("box")
	}
	if state := k.Get(t, id).Tasks["paused"].State; state != "paused" {
		t.Errorf("the paused task is %s", state)
	}
	do(t, k.Gateway, 0, "runs", "resume", id, "paused")
	k.AwaitTask(t, id, "paused", "running")
	exec := func(task string, command ...string) string {
		code, out, stderr := run(t, append([]string{"runs", "exec", "--gateway", k.Gateway, id, task, "--"}, command...)...)
		if code != 0 {
			t.Errorf("exec of %v exits with %d: %s", command, code, stderr)
		}
		return out
	}
	if out := exec("paused", "sh", "-c", `test "$(pwd -P)" = "$(readlink /proc/`+pid+`/cwd)" && echo alive`); out != "alive\n" {
		t.Errorf("in the task: %q", out)
	}
	do(t, k.Gateway, 0, "runs", "cancel", id, "paused")
	k.AwaitTask(t, id, "paused", "cancelled")
	exec("counts", "touch", filepath.Join(k.dir, "go"))
	processes.Await(t, "the counting task has ended", func() bool { return k.Get(t, id).Tasks["counts"].State == "failed" })
	if task := k.Get(t, id).Tasks["counts"]; task.Attempt != 0 || task.Result.ExitCode != 3 {
		t.Errorf("the counting task is %+v", task)
	}
	awaitWholeLog(t, k.Gateway, id, "counts", numbered(100))
	worker.Kill()
	processes.Await(t, "the processes have ended with the killed worker", func() bool {
		_, err := os.Stat("/proc/" + killed)
		return err != nil
	})
}

// TestKeptTaskEndsBeforeItStartsElsewhere stops a worker that does not come back. Its task has ended when another node starts it.
func TestKeptTaskEndsBeforeItStartsElsewhere(t *testing.T) {
	t.Parallel()
	keptEndsFirst(t, func(string) string { return "{ command: *stamps }" }, "shell")
}

// keptEndsFirst checks that for a type of tasks. spec returns the spec of a task that runs the command at the anchor stamps and may
// write below a directory.
func keptEndsFirst(t *testing.T, spec func(files string) string, taskType string) {
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
x-stamps: &stamps 'while true; do cut -d " " -f 1 /proc/uptime >>%s/$SWITCHYARD_ATTEMPT; test $SWITCHYARD_ATTEMPT = 0 || exit 0; sleep 0.02; done'
tasks:
  kept:
    type: %s
    heartbeatTimeout: 5s
    retry: { maxRetries: 2, backoffMs: 10 }
    spec: %s
`, files, taskType, spec(files)))
	k.AwaitTask(t, id, "kept", "running")
	k.join("second")
	first.Signal(syscall.SIGTERM)
	first.Wait()
	if state := k.stateOf("first"); state != "restarting" && state != "offline" { // the latter once the lease is over
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
