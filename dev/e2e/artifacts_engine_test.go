//go:build engines

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/processes"
)

// TestFilesTravelThroughContainers checks that a container whose worker is killed finds and leaves files, as another user than the
// worker.
func TestFilesTravelThroughContainers(t *testing.T) {
	t.Parallel()
	image, dir := enginetest.Image(t), t.TempDir()
	scratch := filepath.Join(dir, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	s := startDev(t, "--nodes", "0")
	worker := func() *processes.Program {
		w := startWith(t, []string{"TEMPORAL_ADDRESS=" + s.Temporal, "SWITCHYARD_GATEWAY=" + s.Gateway},
			"worker", "--name", "box", "--spool-dir", filepath.Join(dir, "spool"), "--scratch-dir", scratch, "--metrics-address", "none", "--allow-mount", dir)
		w.Line(w.Stdout, "Store")
		return w
	}
	first := worker()
	id := s.Submit(t, fmt.Sprintf(`
name: files
tasks:
  make:
    type: shell
    spec: { command: "mkdir src && echo one >src/a && seq 100000 >src/b" }
    artifacts: { out: [{ name: src, path: src }] }
  build:
    type: container
    dependsOn: [make]
    heartbeatTimeout: 5m
    retry: { maxRetries: 0 }
    spec:
      image: %s
      user: "1000"
      network: none
      mounts: [{ hostPath: %s, containerPath: /go, readOnly: true }]
      command: |
        echo started
        while ! test -e /go/go; do sleep 0.1; done
        mkdir out && cat src/a src/b >out/all && ln -s all out/link
    artifacts: { in: [{ from: make.src, path: src }], out: [{ name: out, path: "out/**" }] }
  check:
    type: shell
    dependsOn: [build]
    spec: { command: "wc -l <in/link && head -1 in/all" }
    artifacts: { in: [{ from: build.out, path: in }] }
`, image, dir))
	awaitLogText(t, s.Gateway, id, "build", "started")
	if err := first.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	worker()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", s.Gateway); code != 0 {
		t.Errorf("watch exits with %d: %s", code, stderr)
	}
	d := s.Get(t, id)
	if d.Tasks["build"].Attempt != 0 || d.Tasks["check"].Result.Stdout != "100001\none\n" {
		t.Errorf("%+v", d.Tasks)
	}
	// Nothing of the tasks is left.
	if left, err := filepath.Glob(filepath.Join(scratch, "*", "attempt-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestFilesInSandboxes checks that a sandbox may read and change the files with which it starts, and cannot make its node store
// files that it may not read itself.
func TestFilesInSandboxes(t *testing.T) {
	t.Parallel()
	s := startDev(t, "--nodes", "1")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("root's own"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := s.Submit(t, fmt.Sprintf(`
name: boxes
tasks:
  make:
    type: shell
    spec: { command: "umask 077; mkdir -p src/sub && echo one >src/sub/a" }
    artifacts: { out: [{ name: src, path: src }] }
  build:
    type: shell
    dependsOn: [make]
    retry: { maxRetries: 0 }
    spec: { sandbox: true, command: "echo two >>src/sub/a && cat src/sub/a && mkdir out && mv src/sub/a out/" }
    artifacts: { in: [{ from: make.src, path: src }], out: [{ name: out, path: out }] }
  steal:
    type: shell
    retry: { maxRetries: 0 }
    spec: { sandbox: true, command: 'D=$PWD; cd /; rm -rf "$D"; ln -s %s "$D"' }
    artifacts: { out: [{ name: secret, path: "*" }] }
`, filepath.Dir(secret)))
	s.AwaitRun(t, id, "failed")
	d := s.Get(t, id)
	if build := d.Tasks["build"]; build.State != "completed" || build.Result.Stdout != "one\ntwo\n" {
		t.Errorf("%+v", build)
	}
	if steal := d.Tasks["steal"]; steal.State != "failed" || steal.Reason != "artifacts" {
		t.Errorf("%+v", steal)
	}
}
