//go:build unix

package filelock

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRemovedFile checks that a lock on a removed file does not count, because it keeps no process
// out.
func TestRemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	f, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if !f.is(path) {
		t.Error("the file is not the one at its path")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if f.is(path) {
		t.Error("a removed file is at its path")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f.is(path) {
		t.Error("another file is taken for the removed one")
	}
}
