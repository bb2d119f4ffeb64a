package node

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestLockName(t *testing.T) {
	for _, shared := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "locks")
		if shared {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			t.Setenv("TMP", temp)
			dir = ""
		}
		a, err := LockName(dir, "a")
		if err != nil {
			t.Fatal(err)
		}
		b, err := LockName(dir, "b")
		if err != nil {
			t.Fatal(err)
		}
		_, err = LockName(dir, "a")
		if held, ok := errors.AsType[*HeldNameError](err); !ok || held.Name != "a" || held.PID != os.Getpid() || !strings.Contains(err.Error(), "choose another name") {
			t.Errorf("second lock: %v", err)
		}
		for range 2 {
			if err := a.Release(); err != nil {
				t.Error(err)
			}
		}
		again, err := LockName(dir, "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(again.Release(), b.Release()); err != nil {
			t.Error(err)
		}
	}
}

// TestSharedLockFolder checks that every user can create a lock in the shared folder, and that no
// user can remove another's.
func TestSharedLockFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such modes")
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for range 2 {
		lock, err := LockName("", "a")
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(temp, lockFolder))
		if err != nil || info.Mode().Perm() != 0o777 || info.Mode()&os.ModeSticky == 0 {
			t.Errorf("folder: %v %v", info.Mode(), err)
		}
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}
}

func TestLockNameRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"", "../a", "A", "a/b"} {
		if _, err := LockName(dir, name); err == nil {
			t.Errorf("locked %q", name)
		}
	}
	// The folder may be a file, or a link that another user has placed.
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LockName(file, "a"); err == nil {
		t.Error("locked in a file")
	}
	t.Setenv("TMPDIR", dir)
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, lockFolder)); err != nil {
		t.Fatal(err)
	}
	if _, err := LockName("", "a"); err == nil && runtime.GOOS != "windows" {
		t.Error("locked in a folder that a link leads to")
	}
}
