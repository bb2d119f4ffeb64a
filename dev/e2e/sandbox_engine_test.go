//go:build engines

package e2e

import (
	"strings"
	"testing"

	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// needSandbox skips the test if this machine can neither limit tasks nor sandbox them.
func needSandbox(t *testing.T, gateway string) {
	t.Helper()
	needSandboxOn(t, gateway, "local")
}

// needSandboxOn does the check of needSandbox for the node of a worker.
func needSandboxOn(t *testing.T, gateway, name string) {
	t.Helper()
	if node := ask[nodeItem](t, gateway, "nodes", "get", name); node.Capabilities["sandbox"] != "true" {
		testneeds.Missing(t, "no sandboxes and no memory limits on this machine")
	}
}

// TestMemoryLimits uses more memory than allowed, with and without retries, alone and in a batch, and in a sandbox.
func TestMemoryLimits(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	needSandbox(t, s.Gateway)
	code, stdout, stderr := run(t, "run", write(t, `
name: hogs
defaults:
  type: shell
  resources: { memoryMb: 32, cores: 0 }
  retry: { maxRetries: 0, backoffMs: 10 }
tasks:
  once: { spec: { command: &hog 'head -c 200000000 /dev/zero | tail -c 199000000 >/dev/null' } }
  again: { spec: { command: *hog }, retry: { maxRetries: 1, backoffMs: 10 } }
  boxed: { spec: { command: *hog, sandbox: true } }
  second: { spec: { command: 'test $SWITCHYARD_ATTEMPT = 1 || head -c 200000000 /dev/zero | tail -c 199000000 >/dev/null' }, retry: { maxRetries: 1, backoffMs: 10 } }
  some: { spec: { command: 'test $SWITCHYARD_INDEX != 1 || head -c 200000000 /dev/zero | tail -c 199000000 >/dev/null' }, parallel: 4, batch: 4, maxFailures: 4 }
  below: { spec: { command: 'true' } }
  killed: { spec: { command: 'kill -9 $$' } }
  told: { spec: { command: echo $STATE }, env: { STATE: "${{ parent.once.state }} ${{ parent.once.exitCode }}" }, dependsOn: [once], onFailure: run }
`), "--gateway", s.Gateway, "-o", "json")
	if code != 1 {
		t.Fatalf("exit code %d: %s", code, processes.Tail(stderr))
	}
	d := processes.ParseRun(t, stdout)
	for task, want := range map[string]struct {
		state, reason string
		attempt, code int
	}{
		"once":   {"killed_oom", "oom", 0, 137},
		"again":  {"dead_letter", "oom", 1, 137},
		"boxed":  {"killed_oom", "oom", 0, 137},
		"second": {"completed", "", 1, 0},
		"below":  {"completed", "", 0, 0},
		"killed": {"failed", "signal", 0, 137},
	} {
		got := d.Tasks[task]
		if got.State != want.state || got.Reason != want.reason || got.Attempt != want.attempt || got.Result.ExitCode != want.code {
			t.Errorf("%s: %s, reason %q, attempt %d, exit code %d (%s)", task, got.State, got.Reason, got.Attempt, got.Result.ExitCode, got.Error)
		}
	}
	if got := d.Tasks["told"].Result.Stdout; got != "killed_oom 137\n" {
		t.Errorf("the task after it is told %q", got)
	}
	instances := ask[any](t, s.Gateway, "runs", "get", d.ID)
	for path, want := range map[string]string{"tasks.some.instances.1.state": "killed_oom", "tasks.some.instances.2.state": "completed"} {
		if got := at(instances, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if code, shown, _ := run(t, "runs", "get", d.ID, "--gateway", s.Gateway); code != 0 || !strings.Contains(shown, "killed_oom") || !strings.Contains(shown, "out of memory") {
		t.Errorf("runs get exits with %d and shows\n%s", code, shown)
	}
}

// TestSandbox runs sandboxed tasks that use everything that a task is given.
func TestSandbox(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	needSandbox(t, s.Gateway)
	code, stdout, stderr := run(t, "run", write(t, `
name: boxed
defaults: { type: shell, retry: { maxRetries: 0 } }
tasks:
  first:
    spec:
      sandbox: true
      command: |
        test $(id -u) -ge 1900000000
        cd "$SWITCHYARD_LOCAL_TEMP_DIR"; echo x >x; test -e /tmp/x
        ! echo x 2>/dev/null >/etc/switchyard-test
        echo '{"v": 7}' >$SWITCHYARD_OUTPUT
        echo '{"seen": true}' >$SWITCHYARD_CONTEXT_UPDATE
        echo ok >/dev/stderr
  each:
    spec: { sandbox: true, command: 'cat "$SWITCHYARD_INPUT" >/dev/null && echo "$SWITCHYARD_ITEM$V" >/dev/stdout' }
    env: { V: "${{ parent.first.output.v }}" }
    dependsOn: [first]
    foreach: [a, b, c]
    batch: 3
  last: { spec: { sandbox: true, command: [test, -w, /tmp] }, dependsOn: [each] }
`), "--gateway", s.Gateway, "-o", "json")
	d := processes.ParseRun(t, stdout)
	if code != 0 || d.Context["seen"] != true || d.Tasks["first"].Result.Stderr != "ok\n" {
		t.Fatalf("exit code %d: %s\n%s", code, processes.Tail(stderr), processes.Tail(stdout))
	}
	if got := at(ask[any](t, s.Gateway, "runs", "get", d.ID), "tasks.each.instances.2.result.stdout"); got != "c7\n" {
		t.Errorf("an instance printed %q", got)
	}
	// If no node offers sandboxes, a task that needs one waits and reports why.
	id := s.Submit(t, "name: waits\ntasks: { t: { type: shell, spec: { command: 'true', sandbox: true }, constraints: { requiresCapabilities: { sandbox: better } } } }\n")
	processes.Await(t, "it says what no node has", func() bool {
		_, shown, _ := run(t, "runs", "explain", id, "t", "--gateway", s.Gateway)
		return strings.Contains(shown, "sandbox")
	})
	do(t, s.Gateway, 0, "runs", "cancel", id)
}
