package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// TestLongNewerData runs a program with the next data level. The tree's program refuses its gateway and its files, and its run ends
// with a program that understands it.
func TestLongNewerData(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	dir, level := t.TempDir(), historyv1.ReadableDataLevel()+1
	newer := filepath.Join(t.TempDir(), "switchyard")
	const variables = "switchyard/proto/switchyard/history/v1"
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", fmt.Sprintf("-X %[1]s.readable=%[2]d -X %[1]s.written=%[2]d", variables, level), "-o", newer, ".")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	db := filepath.Join(dir, "state.db")
	s := startDevWith(t, newer, nil, "--db", db)
	id := s.Submit(t, fmt.Sprintf(`
name: long
tasks:
  holds: { type: shell, retry: { backoffMs: 10 }, spec: { command: '%s' } }
  after: { type: shell, dependsOn: [holds], spec: { command: 'true' } }
`, gate(dir, "long")))
	s.AwaitTask(t, id, "holds", "running")
	refused := func(args ...string) {
		t.Helper()
		out, err := outputOf(t, binary, args...)
		exited, ok := errors.AsType[*exec.ExitError](err)
		want := fmt.Sprintf("has the data level %d since ", level)
		if !ok || exited.ExitCode() != 3 || !strings.Contains(out, want) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	refused("worker", "--name", "old", "--gateway", s.Gateway, "--metrics-address", "none", "--spool-dir", filepath.Join(t.TempDir(), "spool"))
	s.Signal(syscall.SIGKILL)
	s.Wait()

	before := digests(t, dir)
	refused("dev", "--db", db, "--port", "0", "--gateway-port", "0", "--ui-port", "0")
	refused("gateway", "--store", db+".store", "--address", "127.0.0.1:0")
	if after := digests(t, dir); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}

	open(t, dir, "long")
	s = startDevWith(t, newer, nil, "--db", db)
	do(t, s.Gateway, 0, "runs", "watch", id)
}

// digests returns the names and the digests of all files in a folder.
func digests(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %x\n", path, sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
