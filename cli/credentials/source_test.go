package credentials

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSourceFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if _, err := NewSource(path); err == nil {
		t.Error("a file that does not exist has a token")
	}
	put := func(token string, mode os.FileMode) {
		t.Helper()
		fresh := path + ".new"
		if err := os.WriteFile(fresh, []byte(token+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		// The files have the same age, as those written within one tick of the clock do.
		at := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
		if err := errors.Join(os.Chtimes(fresh, at, at), os.Rename(fresh, path)); err != nil {
			t.Fatal(err)
		}
	}
	put("sy_one", 0o644)
	if _, err := NewSource(path); err == nil {
		t.Error("a file that others can read has a token")
	}
	put("sy_one", 0o600)
	s, err := NewSource(path)
	if err != nil || s.Token() != "sy_one" {
		t.Fatal(s, err)
	}
	// While the file is unreadable, the previous token stays in use.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.read(time.Now()); err == nil || s.Token() != "sy_one" {
		t.Errorf("without the file: %v", err)
	}
	put("sy_two", 0o600)
	for deadline := time.Now().Add(time.Minute); s.Token() != "sy_two"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new token is not found")
		}
	}
}
