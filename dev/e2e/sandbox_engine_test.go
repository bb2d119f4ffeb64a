//go:build engines

package e2e

import (
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

// TestSandboxAndMemoryLimits runs sandboxed tasks that use what a task is given, and tasks that use more memory than
// allowed: with a retry, in a batch, and in a sandbox.
func TestSandboxAndMemoryLimits(t *testing.T) {
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
  again: { spec: { command: &hog 'head -c 200000000 /dev/zero | tail -c 199000000 >/dev/null' }, retry: { maxRetries: 1, backoffMs: 10 } }
  boxed: { spec: { command: *hog, sandbox: true } }
  some: { spec: { command: 'test $SWITCHYARD_INDEX != 1 || head -c 200000000 /dev/zero | tail -c 199000000 >/dev/null' }, parallel: 4, batch: 4, maxFailures: 4 }
  told: { spec: { command: echo $STATE }, env: { STATE: "${{ parent.boxed.state }} ${{ parent.boxed.exitCode }}" }, dependsOn: [boxed], onFailure: run }
  first:
    spec:
      sandbox: true
      command: |
        test $(id -u) -ge 1900000000
        cd "$SWITCHYARD_LOCAL_TEMP_DIR"; echo x >x; test -e /tmp/x
        ! echo x 2>/dev/null >/etc/switchyard-test
        echo '{"v": 7}' >$SWITCHYARD_OUTPUT
        echo '{"seen": true}' >$SWITCHYARD_CONTEXT_UPDATE
  each:
    spec: { sandbox: true, command: 'cat "$SWITCHYARD_INPUT" >/dev/null && echo "$SWITCHYARD_ITEM$V" >/dev/stdout' }
    env: { V: "${{ parent.first.output.v }}" }
    dependsOn: [first]
    foreach: [a, b, c]
    batch: 3
`), "--gateway", s.Gateway, "-o", "json")
	d := processes.ParseRun(t, stdout)
	if code != 1 || d.Context["seen"] != true {
		t.Fatalf("exit code %d, context %v: %s", code, d.Context, processes.Tail(stderr))
	}
	shown := ask[any](t, s.Gateway, "runs", "get", d.ID)
	for path, want := range map[string]string{
		"tasks.again.state": "dead_letter", "tasks.again.attempt": "1", "tasks.again.result.exitCode": "137", "tasks.boxed.state": "killed_oom",
		"tasks.told.result.stdout": "killed_oom 137\n", "tasks.some.instances.1.state": "killed_oom", "tasks.some.instances.2.state": "completed",
		"tasks.each.instances.2.result.stdout": "c7\n",
	} {
		if got := at(shown, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}
