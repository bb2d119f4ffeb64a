package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"switchyard/activities/store/storekey"
)

// directory is the directory of a folder on its file system, and the files in it. It never creates the directory again:
// a value stored in its place while the file system is away would be lost when that comes back.
type directory struct {
	dir    string
	closed atomic.Bool
}

// Permissions of the folder's files and directories.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// makeDirTries is how often put tries to create the directory of a value.
const makeDirTries = 3

// MarkerName is the file that distinguishes the folder of a store from the empty folder in its place while its file
// system is away.
const MarkerName = "~store"

func (d *directory) path(key string) string { return filepath.Join(d.dir, filepath.FromSlash(key)) }

// mark creates the marker unless it exists.
func (d *directory) mark() error {
	file, err := os.OpenFile(d.path(MarkerName), os.O_CREATE|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	return file.Close()
}

// errFolderAway is the error of a folder without its marker. It is deliberately not ErrNotFound.
var errFolderAway = errors.New("the folder is away: it has no file " + MarkerName)

// errFolderClosed is the error of a folder after close.
var errFolderClosed = errors.New("the store is closed")

// present returns an error if the folder is not the one that was opened, or has been closed.
func (d *directory) present() error {
	if d.closed.Load() {
		return errFolderClosed
	}
	switch _, err := os.Lstat(d.path(MarkerName)); {
	case errors.Is(err, fs.ErrNotExist):
		return errFolderAway
	case err != nil:
		return err
	}
	return nil
}

// writeTemporary writes a value to a new file next to path and returns the file's name.
func (d *directory) writeTemporary(path string, value []byte) (name string, err error) {
	dir, pattern := filepath.Dir(path), filepath.Base(path)+".*"+storekey.TemporarySuffix
	temp, err := os.CreateTemp(dir, pattern)
	// A concurrent delete may remove an empty directory at any time.
	for try := 0; errors.Is(err, fs.ErrNotExist) && try < makeDirTries; try++ {
		if err := d.makeDir(dir); err != nil {
			return "", err
		}
		temp, err = os.CreateTemp(dir, pattern)
	}
	if err != nil {
		return "", err
	}
	_, err = temp.Write(value)
	if err := errors.Join(err, temp.Close()); err != nil {
		_ = os.Remove(temp.Name()) // if this fails, keys skips the file
		return "", err
	}
	return temp.Name(), nil
}

// makeDir creates a directory inside the folder with its parents, but never the folder itself. The folder may have gone
// away since the last check; a value stored in its place would be lost when it comes back.
func (d *directory) makeDir(dir string) error {
	above := filepath.Dir(dir)
	if above == d.dir {
		if err := d.present(); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrNotExist) && above != d.dir {
		if err := d.makeDir(above); err != nil {
			return err
		}
		err = os.Mkdir(dir, dirMode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// link links a complete file to its name, which succeeds for only one of several concurrent processes.
func (d *directory) link(path string, value []byte) (existed bool, err error) {
	temp, err := d.writeTemporary(path, value)
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(temp) }() // if this fails, keys skips the file
	err = os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	return false, err
}

// readFile returns the content of a file, or ErrNotFound if it does not exist.
func readFile(path string) ([]byte, error) {
	value, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return nil, ErrNotFound
	}
	return value, withoutPath(err)
}

// withoutPath removes the store's path from an error, which clients of a gateway may see. The Store adds the key. If the file system is
// full, withoutPath adds the remedy.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", at.Op, at.Err)
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		err = fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w in the folder of the store; %s", err, spaceRemedy)
	}
	return err
}
