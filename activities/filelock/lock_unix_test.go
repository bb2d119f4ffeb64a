//go:build unix

package filelock

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
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

// TestReleaseCountsForCopies releases a lock while there is a copy of its descriptor, as in a process that is just being
// started.
func TestReleaseCountsForCopies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	for name, release := range map[string]func(*Lock) error{"Release": (*Lock).Release, "Remove": (*Lock).Remove} {
		lock, err := Take(path)
		if err != nil {
			t.Fatal(err)
		}
		copied, err := unix.Dup(int(lock.file))
		if err != nil {
			t.Fatal(err)
		}
		if err := release(lock); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		next, err := Take(path)
		if err != nil {
			t.Errorf("after %s: %v", name, err)
		} else if err := next.Release(); err != nil {
			t.Error(err)
		}
		if err := unix.Close(copied); err != nil {
			t.Error(err)
		}
	}
}
