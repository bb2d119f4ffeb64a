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

// TestContainersNeedLeave checks that a container gets only the permissions that its node allows, and that a container
// that needs more waits and reports why.
func TestContainersNeedLeave(t *testing.T) {
	t.Parallel()
	image, dir := enginetest.Image(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("seen"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := write(t, fmt.Sprintf(`
name: leave
tasks:
  read:
    type: container
    spec:
      image: %s
      network: none
      command: cat /data/in
      mounts: [{ hostPath: %s, containerPath: /data, readOnly: true }]
`, image, dir))
	refused := start(t, "run", file)
	refused.Line(refused.Stderr, "local does not allow mounting "+dir+" (switchyard run --allow-mount "+dir+")")
	refused.Signal(syscall.SIGINT)
	if code := refused.Wait(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	code, stdout, _ := run(t, "run", file, "--allow-mount", dir+":ro", "-o", "json")
	if got := processes.ParseRun(t, stdout).Tasks["read"]; code != 0 || got.Result.Stdout != "seen" {
		t.Errorf("exit code %d, %+v", code, got)
	}
}
