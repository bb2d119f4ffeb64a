package workers

import (
	"os"
	"path/filepath"
	"testing"
)

func TestState(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "state")
	seen := map[string]bool{}
	for _, fleet := range []string{"one", "two"} {
		for _, name := range []string{"a", "b"} {
			dir, err := openState(parent, fleet, name)
			again, _ := openState(parent, fleet, name)
			if err != nil || dir != again || seen[dir] || filepath.Dir(dir) != parent {
				t.Errorf("%s, %s: %s and %s, %v", fleet, name, dir, again, err)
			}
			seen[dir] = true
		}
	}
}

// TestStateIsPrivate checks that a folder that another user can read, or may have created, is not used.
func TestStateIsPrivate(t *testing.T) {
	t.Parallel()
	open, link := filepath.Join(t.TempDir(), "open"), filepath.Join(t.TempDir(), "link")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{open, link} {
		if dir, err := openState(parent, "f", "n"); err == nil {
			t.Errorf("%s is used", dir)
		}
	}
}
