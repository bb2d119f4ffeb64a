package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor/workspace"
)

// TestRemoveLeavesWhatIsMounted checks that files of the machine survive that a program has mounted below its directory.
func TestRemoveLeavesWhatIsMounted(t *testing.T) {
	t.Parallel()
	kept, dir := t.TempDir(), filepath.Join(t.TempDir(), "a")
	file := filepath.Join(kept, "deep", "file")
	for _, folder := range []string{filepath.Dir(file), filepath.Join(dir, "mount point#"), filepath.Join(dir, "other")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"mount point#", "mount point#/deep", "other"} {
		if err := unix.Mount(kept, filepath.Join(dir, at), "", unix.MS_BIND, ""); err != nil {
			t.Skipf("nothing can be mounted here: %v", err)
		}
	}
	if err := workspace.Remove(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a file elsewhere: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is still there")
	}
}
