package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// list returns the files and folders below a folder with their times, which a write changes.
func list(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		names = append(names, path+" "+info.ModTime().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

// TestStoreIsCheckedWithoutAChange checks stores of each kind, as does a doctor on a machine where no gateway runs.
func TestStoreIsCheckedWithoutAChange(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    Result
		says    string
	}{
		"an empty folder": {func(*testing.T, string) {}, OK, "is empty; the first start makes it a store"},
		"another folder": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, Warning, "holds other files"},
		"a store": {func(t *testing.T, dir string) {
			s, err := store.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.ClaimFor("mine", "test")
			if _, err := s.Identity(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, OK, "can be written"},
		"a store of a newer program": {func(t *testing.T, dir string) {
			for _, name := range []string{store.MarkerName, store.LevelKey(historyv1.ReadableDataLevel() + 1)} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("v9.0.0"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}, Failed, "since v9.0.0 has used it"},
		"a file": {func(t *testing.T, dir string) {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, Failed, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			test.prepare(t, dir)
			before := list(t, dir)
			for _, location := range []string{dir, "file://" + dir} {
				e := &examination{Settings: Settings{Role: RoleGateway, Store: location}}
				if f := e.checkStore(t.Context(), e.Store, store.Options{}); f.Result != test.want || !strings.Contains(f.Detail, test.says) {
					t.Errorf("%s: %+v, want %s with %q", location, f, test.want, test.says)
				}
			}
			if after := list(t, dir); after != before {
				t.Errorf("the check changed\n%s\nto\n%s", before, after)
			}
		})
	}
}

func TestMissingStoreIsNotCreated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	e := &examination{Settings: Settings{Role: RoleGateway, Store: dir}}
	if f := e.checkStore(t.Context(), e.Store, store.Options{}); f.Result != OK || !strings.Contains(f.Detail, "the first start creates it") {
		t.Errorf("%+v", f)
	}
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("the check created a folder")
	}
}
