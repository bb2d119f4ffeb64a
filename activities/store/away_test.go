package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"switchyard/activities/store/storekey"
)

// If the file system of a folder is not mounted, an empty folder or nothing is in its place. The store returns an error
// then: its values are not missing, and nothing is stored in the wrong place.
func TestFolderAway(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(dir string) error{
		"gone":              func(string) error { return nil },
		"an empty one here": func(dir string) error { return os.Mkdir(dir, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			s, err := Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			key, other := storekey.Status("r-1", 0), storekey.Status("r-1", 1)
			if err := s.Put(t.Context(), key, []byte("kept")); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Rename(dir, dir+"-away"), replace(dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(t.Context(), key); err == nil || errors.Is(err, ErrNotFound) {
				t.Errorf("get: %v", err)
			}
			if err := s.Put(t.Context(), other, []byte("lost")); err == nil {
				t.Error("a value was stored in its place")
			}
			if _, err := s.PutIfAbsent(t.Context(), other, []byte("lost")); err == nil {
				t.Error("a value was stored in its place")
			}
			for _, err := range s.Keys(t.Context(), storekey.RunPrefix("r-1")) {
				if err == nil {
					t.Error("it lists keys")
				}
			}
			if err := s.Probe(t.Context(), "r-1"); err == nil {
				t.Error("it answers a probe")
			}
			if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+"-away", dir)); err != nil {
				t.Fatal(err)
			}
			if value, err := s.Get(t.Context(), key); err != nil || string(value) != "kept" {
				t.Errorf("when it is back: %q, %v", value, err)
			}
			if err := s.Probe(t.Context(), "r-1"); err != nil {
				t.Errorf("when it is back: %v", err)
			}
		})
	}
}
