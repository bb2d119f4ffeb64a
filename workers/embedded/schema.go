package embedded

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/schema/sqlite"
)

const (
	// sqliteDriver is the name under which the server's SQLite plugin registers its driver.
	sqliteDriver = "sqlite"
	sqliteMagic  = "SQLite format 3\x00"
	// The fields of the header are described at https://www.sqlite.org/fileformat.html#the_database_header.
	headerSize          = 100
	headerUserVersion   = 60
	headerApplicationID = 68
	// applicationID is "SwYd". It marks a database that this package created.
	applicationID = 0x53775964
	// unfinishedSuffix ends the name of a database that is being written.
	unfinishedSuffix = ".new"
)

// schemaVersion returns the versions of the main and the visibility schema as one number, each "major.minor" encoded as
// major*100+minor: 0.11 and 0.1 give 110001. It grows with the server's schema.
func schemaVersion() (uint32, error) {
	var number uint32
	for _, version := range []string{sqlite.Version, sqlite.VisibilityVersion} {
		var major, minor uint32
		if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
			return 0, fmt.Errorf("schema version %q: %w", version, err)
		}
		number = number*10_000 + major*100 + minor
	}
	return number, nil
}

// readMark returns the mark of a database, according to its header, or why the file cannot be used. The header fields are written
// once, before the file gets its name, so a write-ahead log of a killed process cannot hide newer values. It returns
// fs.ErrNotExist for a file that must be created because it does not exist or is empty.
func readMark(path string) (mark, error) {
	// Opening a pipe would block until its other end is open.
	info, err := os.Stat(path)
	if err != nil {
		return mark{}, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return mark{}, fmt.Errorf("%s is not a regular file (%s); name a file for the database", path, info.Mode())
	}
	file, err := os.Open(path)
	if err != nil {
		return mark{}, err
	}
	defer func() { _ = file.Close() }()
	header := make([]byte, headerSize)
	switch n, err := io.ReadFull(file, header); {
	case n == 0 && errors.Is(err, io.EOF):
		return mark{}, os.ErrNotExist
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return mark{}, fmt.Errorf("read database: %w", err)
	case err != nil || !strings.HasPrefix(string(header), sqliteMagic):
		return mark{}, fmt.Errorf("%s is not a SQLite database", path)
	}
	if binary.BigEndian.Uint32(header[headerApplicationID:]) != applicationID {
		return mark{}, fmt.Errorf("%s is a SQLite database, but not one that Switchyard made", path)
	}
	return parseMark(binary.BigEndian.Uint32(header[headerUserVersion:])), nil
}

// createDatabase creates a complete database beside path and renames it into place. The caller holds the lock.
func createDatabase(ctx context.Context, path string) error {
	unfinished := path + unfinishedSuffix
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("create database: %w", err)
	}
	// Histories contain task inputs, including secrets. SQLite makes the log as private as the file.
	if err := os.WriteFile(unfinished, nil, 0o600); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	if err := writeSchema(ctx, unfinished, releases[len(releases)-1].mark); err != nil {
		return errors.Join(fmt.Errorf("create database %s: %w", path, err), os.Remove(unfinished))
	}
	// SQLite would replay leftovers of a removed database into the new one.
	for _, leftover := range []string{path + "-wal", path + "-shm"} {
		if err := os.Remove(leftover); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("create database: %w", err)
		}
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a rename in the folder durable.
func syncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func writeSchema(ctx context.Context, path string, version mark) error {
	db, err := sql.Open(sqliteDriver, fmt.Sprintf("file:%s?mode=rwc", escapePath(path)))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := sqlite.SetupSchemaOnDB(schemaWriter{ctx: ctx, tx: tx}); err != nil {
		return err
	}
	marks := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version.number())
	if _, err := tx.ExecContext(ctx, marks); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return db.Close()
}

// schemaWriter implements the part of AdminDB that the set-up of the schema uses. It runs every statement in one
// transaction.
type schemaWriter struct {
	sqlplugin.AdminDB
	ctx context.Context
	tx  *sql.Tx
}

func (w schemaWriter) Exec(stmt string, args ...any) error {
	_, err := w.tx.ExecContext(w.ctx, stmt, args...)
	return err
}

// escapePath escapes a path for a SQLite URI, in which ?, # and % are special.
func escapePath(path string) string {
	return (&url.URL{Path: path}).EscapedPath()
}
