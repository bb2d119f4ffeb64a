package embedded

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// open opens a database as the server does.
func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open(sqliteDriver, "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// crashed returns a database with the previous minor version, as a killed process leaves it: only its log has one of the rows.
func crashed(t *testing.T) (path string) {
	t.Helper()
	made := filepath.Join(t.TempDir(), "made.db")
	must(t, createDatabase(t.Context(), made))
	db := open(t, made)
	for _, statement := range []string{"PRAGMA journal_mode = wal", "CREATE TABLE rows (name TEXT)", "INSERT INTO rows VALUES ('kept')"} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	path = filepath.Join(t.TempDir(), "test.db")
	for _, suffix := range []string{"", "-wal"} {
		must(t, copyFile(made+suffix, path+suffix))
	}
	return path
}

func countOf(t *testing.T, path, query string) (n int, err error) {
	t.Helper()
	return n, open(t, path).QueryRowContext(t.Context(), query).Scan(&n)
}

func TestUpgradeByOneMinorVersion(t *testing.T) {
	t.Parallel()
	path, own := crashed(t), releases[len(releases)-1]
	next := release{mark: mark{own.minor + 1, own.schema + 1}, steps: []string{"ALTER TABLE rows ADD COLUMN size INT DEFAULT 3"}}
	for range 2 { // the second start changes nothing
		created, err := prepareDatabase(t.Context(), path, append(slices.Clone(releases), next), slog.New(slog.DiscardHandler))
		if created || err != nil {
			t.Fatalf("created %t, %v", created, err)
		}
	}
	if have, err := readMark(path); err != nil || have != next.mark {
		t.Errorf("the mark is %+v, %v", have, err)
	}
	if n, err := countOf(t, path, "SELECT size FROM rows WHERE name = 'kept'"); n != 3 || err != nil {
		t.Errorf("the row of the log has the size %d, %v", n, err)
	}
	kept := path + ".temporal-" + own.String()
	if have, err := readMark(kept); err != nil || have != own.mark {
		t.Errorf("the copy has the mark %+v, %v", have, err)
	}
	if n, err := countOf(t, kept, "SELECT COUNT(*) FROM rows"); n != 1 || err != nil {
		t.Errorf("the copy has %d rows, %v", n, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	// The older Temporal refuses the upgraded database, and names the copy.
	_, err := prepareDatabase(t.Context(), path, releases, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "which cannot read it") || !strings.HasSuffix(err.Error(), "; "+kept+" is the database before it was upgraded") {
		t.Errorf("the way back: %v", err)
	}
}

func TestFailedUpgradeChangesNothing(t *testing.T) {
	t.Parallel()
	path, own := crashed(t), releases[len(releases)-1]
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, try := range map[string]struct {
		ctx   context.Context
		steps []string
	}{
		"bad statement": {t.Context(), []string{"CREATE TABLE more (a INT)", "ALTER TABLE nowhere ADD COLUMN a INT"}},
		"cancelled":     {cancelled, nil},
	} {
		next := release{mark: mark{own.minor + 1, own.schema + 1}, steps: try.steps}
		if _, err := prepareDatabase(try.ctx, path, append(slices.Clone(releases), next), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "upgrade database "+path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if have, err := readMark(path); err != nil || have != own.mark {
		t.Errorf("the mark is %+v, %v", have, err)
	}
	if n, err := countOf(t, path, "SELECT COUNT(*) FROM rows"); n != 1 || err != nil {
		t.Errorf("the database has %d rows, %v", n, err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}
