//go:build engines

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/processes"
)

// TestSecretsStayInTheContainer checks the same as TestSecretsStayWithTheTask, for a container whose worker is killed
// while it runs. The next worker masks the later output, although the node's secret has another value by then.
func TestSecretsStayInTheContainer(t *testing.T) {
	t.Parallel()
	image, dir := enginetest.Image(t), t.TempDir()
	scratch, spool := filepath.Join(dir, "scratch"), filepath.Join(dir, "spool")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	s := startDev(t, "--nodes", "0", "--db", filepath.Join(dir, "temporal.db"))
	worker := func(value string) *processes.Program {
		w := startWith(t, []string{"TEMPORAL_ADDRESS=" + s.Temporal, "SWITCHYARD_GATEWAY=" + s.Gateway, "DEPLOY_TOKEN=" + value},
			"worker", "--name", "box", "--spool-dir", spool, "--scratch-dir", scratch, "--log-level", "debug", "--metrics-address", "none",
			"--allow-secret", "env:DEPLOY_*", "--allow-mount", dir)
		w.Line(w.Stdout, "Store")
		return w
	}
	first := worker(envSecret)
	found := newLeaks(t, envSecret)
	id := s.Submit(t, fmt.Sprintf(`
name: secrets
tasks:
  tell:
    type: container
    secretEnv: { TOKEN: "env:DEPLOY_TOKEN" }
    heartbeatTimeout: 5m
    retry: { maxRetries: 0 }
    spec:
      image: %s
      network: none
      mounts: [{ hostPath: %s, containerPath: /go, readOnly: true }]
      command: |
        echo "marker-before $TOKEN"
        while ! test -e /go/go; do sleep 0.1; done
        echo "marker-after $TOKEN"; echo "token=$TOKEN" >"$SWITCHYARD_OUTPUT"
        echo "told=marker-context $TOKEN" >"$SWITCHYARD_CONTEXT_UPDATE"
`, image, dir))
	awaitLogText(t, s.Gateway, id, "tell", "marker-before ***")
	found.searchProcesses()
	if err := first.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	found.searchFolder(scratch, "attempt-")
	second := worker("another-value-by-now")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", s.Gateway); code != 0 {
		t.Errorf("watch exits with %d: %s", code, stderr)
	}
	d := s.Get(t, id)
	if got := d.Tasks["tell"]; got.Attempt != 0 || got.Result.Stdout != "marker-before ***\nmarker-after ***\n" || got.Result.Output["token"] != "***" || d.Context["told"] != "marker-context ***" {
		t.Errorf("%+v, context %v", got, d.Context)
	}
	awaitWholeLog(t, s.Gateway, id, "tell", "marker-before ***\nmarker-after ***\n")
	found.searchHistories(s.Temporal, id)
	for _, p := range []*processes.Program{second, s.Program} {
		p.Signal(syscall.SIGINT)
		p.Wait()
		found.search("the worker's or the gateway's own log", p.Stdout.String()+p.Stderr.String())
	}
	found.search("the log of the first worker", first.Stdout.String()+first.Stderr.String())
	found.searchFolder(dir, "")
	for _, marker := range []string{"before", "after", "context"} {
		if !found.seen[marker] {
			t.Errorf("marker-%s, which stands beside a secret, was found nowhere: the search is void", marker)
		}
	}
}
