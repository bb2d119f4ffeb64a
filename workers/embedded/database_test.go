package embedded

import (
	"context"
	"database/sql"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	own := releases[len(releases)-1].mark
	for name, test := range map[string]struct {
		make func(t *testing.T, path string)
		want string
	}{
		"text":            {func(t *testing.T, path string) { write(t, path, strings.Repeat("not a database ", 20)) }, "is not a SQLite database"},
		"short":           {func(t *testing.T, path string) { write(t, path, "x") }, "is not a SQLite database"},
		"somebody else's": {makeForeign, "not one that Switchyard made"},
		"newer Temporal":  {func(t *testing.T, path string) { makeVersion(t, path, mark{own.minor + 1, own.schema}) }, "was last used with Temporal"},
		"other schema":    {func(t *testing.T, path string) { makeVersion(t, path, mark{own.minor, own.schema - 1}) }, "no release of Switchyard"},
		"folder":          {func(t *testing.T, path string) { makeFolder(t, path) }, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			test.make(t, path)
			// The second attempt checks that a refusal releases the lock.
			for range 2 {
				_, err := Start(t.Context(), Options{DBFile: path})
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
		})
	}
	t.Run("no folder", func(t *testing.T) {
		_, err := Start(t.Context(), Options{DBFile: filepath.Join(t.TempDir(), "nowhere", "test.db")})
		if err == nil || !strings.Contains(err.Error(), "no such file or directory") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCreateDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	// These are leftovers of a process that was killed while it created a database, an empty file, and the log of a
	// removed database.
	write(t, path+".new", "half")
	write(t, path+"-wal", "stale")
	write(t, path, "")
	if _, err := readMark(path); !os.IsNotExist(err) {
		t.Errorf("an empty file: %v", err)
	}
	if err := createDatabase(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if have, err := readMark(path); err != nil || have != releases[len(releases)-1].mark {
		t.Errorf("the mark is %v, %v", have, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(path + "?*")
	if err != nil || len(left) > 0 {
		t.Errorf("left beside it: %v, %v", left, err)
	}

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	other := filepath.Join(t.TempDir(), "test.db")
	if err := createDatabase(cancelled, other); err == nil {
		t.Error("made although the context had ended")
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("a half-made file got its name: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func makeFolder(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func makeForeign(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open(sqliteDriver, "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE wagons (id INT)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func makeVersion(t *testing.T, path string, version mark) {
	t.Helper()
	if err := createDatabase(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	setMark(t, path, version)
}

// setMark changes the mark in the header of a database that is not in use.
func setMark(t *testing.T, path string, version mark) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(binary.BigEndian.AppendUint32(nil, version.number()), headerUserVersion); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
