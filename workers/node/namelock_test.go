package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLockName checks the lock in a given folder, and in the folder of the machine, which depends on the state folder and not
// on the one for temporary files.
func TestLockName(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, dir := range []string{filepath.Join(t.TempDir(), "locks"), ""} {
		t.Setenv("TMPDIR", t.TempDir())
		a, err := LockName(dir, "a")
		if err != nil {
			t.Fatal(err)
		}
		b, err := LockName(dir, "b")
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", t.TempDir())
		_, err = LockName(dir, "a")
		if held, ok := errors.AsType[*HeldNameError](err); !ok || held.Name != "a" || held.PID != os.Getpid() || !strings.Contains(err.Error(), "choose another name") {
			t.Errorf("second lock: %v", err)
		}
		for range 2 {
			if err := a.Remove(); err != nil {
				t.Error(err)
			}
		}
		again, err := LockName(dir, "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(again.Remove(), b.Remove()); err != nil {
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
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LockName(file, "a"); err == nil {
		t.Error("locked in a file")
	}
	t.Setenv("XDG_STATE_HOME", file)
	if _, err := LockName("", "a"); err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
		t.Errorf("without a state folder: %v", err)
	}
}

// TestNameLockProvesWhatMayBeRegistered checks that the lock proves the death of each earlier holder that may be the registered one.
func TestNameLockProvesWhatMayBeRegistered(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		note func(l *NameLock)
		dead string // afterwards, for the next holder
	}{
		{func(l *NameLock) { l.NoteAttempt("a") }, "a"},
		{func(l *NameLock) { l.NoteAttempt("b") }, "a b"},
		{func(*NameLock) {}, "a b"},
		{func(l *NameLock) { l.NoteAttempt("c"); l.NoteRefused() }, "a b"},
		{func(l *NameLock) { l.NoteAttempt("c"); l.NoteRegistered("c") }, "c"},
		{func(l *NameLock) { l.NoteAttempt("d"); l.NoteRegistered("d"); l.NoteAttempt("d") }, "d"},
	} {
		l, err := LockName(dir, "n")
		if err != nil {
			t.Fatal(err)
		}
		step.note(l)
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		if l, err = LockName(dir, "n"); err != nil {
			t.Fatal(err)
		}
		for _, incarnation := range []string{"a", "b", "c", "d", ""} {
			if want := slices.Contains(strings.Fields(step.dead), incarnation); l.IsDead(incarnation) != want {
				t.Errorf("%q is dead: %v; the lock should prove the death of %s", incarnation, !want, step.dead)
			}
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
