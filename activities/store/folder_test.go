package store_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

func TestFolderIsItsUsersAlone(t *testing.T) {
	for name, openIn := range map[string]func(testing.TB, string) *store.Store{
		"folder":        func(t testing.TB, dir string) *store.Store { return open(t, dir) },
		"shared folder": func(t testing.TB, dir string) *store.Store { return openShared(t, dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state.db.store")
			s := openIn(t, dir)
			for _, key := range []string{storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0), storekey.Cached("ci", "build", "deps")} {
				if err := s.Put(t.Context(), key, []byte("password")); err != nil {
					t.Fatal(err)
				}
			}
			for i, value := range [][]byte{[]byte("small"), bytes.Repeat([]byte("large"), 5000)} {
				if _, err := s.PutIfAbsent(t.Context(), storekey.Result("ci-0k", 0, "build", int32(i)), value); err != nil {
					t.Fatal(err)
				}
			}
			files := 0
			err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := entry.Info()
				if err != nil {
					return err
				}
				if info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s: %s", path, info.Mode())
				}
				if !entry.IsDir() {
					files++
				}
				return nil
			})
			if err != nil || files < 3 {
				t.Errorf("%d files, %v", files, err)
			}
		})
	}
}

func TestFolderHasNoValueForADirectory(t *testing.T) {
	s := open(t, t.TempDir())
	key := storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0)
	if err := s.Put(t.Context(), key, []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"runs/ci-0k/logs", "runs/ci-0k/logs/build", key + "/below"} {
		if _, err := s.Get(t.Context(), other); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", other, err)
		}
	}
}

func TestFolderKeepsItsPlaceToItself(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	key := storekey.LogChunk("ci-0k", 0, "build", 0, 0, 0)
	if err := s.Put(t.Context(), key, []byte("x")); err != nil {
		t.Fatal(err)
	}
	err := s.Put(t.Context(), key+"/below", []byte("x"))
	if err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("a value below a file: %v", err)
	}
	if err := s.Put(t.Context(), "runs/ci-0k/logs", []byte("x")); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("a value in the place of a directory: %v", err)
	}
	if _, err := s.PutIfAbsent(t.Context(), key+"/below", bytes.Repeat([]byte("x"), 5000)); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("a large value below a file: %v", err)
	}
}
