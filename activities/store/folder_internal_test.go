package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// If a folder goes away just after the check for it, a put neither creates a folder in its place nor stores anything in
// another one there.
func TestNothingIsStoredInThePlaceOfAFolderThatIsAway(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func() error {
		_, err := f.writeTemporary(f.path("runs/ci-1/status"), []byte("done"))
		return err
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := write(); !errors.Is(err, errFolderAway) {
		t.Errorf("without a folder: %v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there again: %v", err)
	}
	if err := os.Mkdir(dir, dirMode); err != nil {
		t.Fatal(err)
	}
	if err := write(); !errors.Is(err, errFolderAway) {
		t.Errorf("in an empty folder: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the empty folder has %v, %v", entries, err)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+"-away", dir)); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil {
		t.Error(err)
	}
}
