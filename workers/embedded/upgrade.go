package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// upgradeDatabase changes the schema of a database to that of a release, and returns the path of a copy of the database as it was. A
// crash at any time leaves either the old database or the new one under the name. The caller holds the lock.
func upgradeDatabase(ctx context.Context, path string, from mark, to release) (kept string, err error) {
	// The file is complete without its log before it is copied.
	if err := runStatements(ctx, path); err != nil {
		return "", err
	}
	unfinished := path + unfinishedSuffix
	defer func() {
		for _, leftover := range []string{unfinished, unfinished + "-wal", unfinished + "-shm"} {
			if removeErr := os.Remove(leftover); !errors.Is(removeErr, os.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}()
	if err := copyFile(path, unfinished); err != nil {
		return "", err
	}
	steps := append([]string{"BEGIN"}, to.steps...)
	steps = append(steps, fmt.Sprintf("PRAGMA user_version = %d", to.number()), "COMMIT")
	if err := runStatements(ctx, unfinished, steps...); err != nil {
		return "", err
	}
	if err := syncFile(unfinished); err != nil {
		return "", err
	}
	kept = copyOf(path, from)
	if err := os.Remove(kept); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if os.Link(path, kept) != nil { // the file system has no links
		if err := copyFile(path, kept); err != nil {
			return "", err
		}
	}
	if err := os.Rename(unfinished, path); err != nil {
		return "", err
	}
	return kept, syncFolder(filepath.Dir(path))
}

// copyOf returns the path of the copy of a database that an upgrade from a mark keeps.
func copyOf(path string, from mark) string { return path + ".temporal-" + from.String() }

// runStatements executes statements on one connection to a database file. Afterwards the file is complete without its log.
func runStatements(ctx context.Context, path string, statements ...string) (err error) {
	db, err := sql.Open(sqliteDriver, fmt.Sprintf("file:%s?mode=rw", escapePath(path)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	var busy, pages, written int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &written); err != nil {
		return fmt.Errorf("write the log into the database: %w", err)
	}
	if busy != 0 {
		return fmt.Errorf("another program has %s open; close it, and start again", path)
	}
	return nil
}

// copyFile copies a file to a new one that only its owner can read.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// syncFile makes the contents of a file durable.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
