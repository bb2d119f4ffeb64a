package tool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
)

// Bounds for a work directory that is walked, packed and restored.
const (
	maxEntries = 200_000
	maxDepth   = 256
)

// entry is a file in a work directory.
type entry struct {
	// path is relative to the work directory, with slashes.
	path string
	// dir is the directory that holds the entry, whose name is in info.
	dir  *os.Root
	info fs.FileInfo
}

// walk calls visit for everything in a directory, sorted by name, and for a directory before its content. It does not
// follow links. It skips entries that disappear during the walk, and directories that it cannot read. visit may return
// fs.SkipDir to skip a directory, and fs.SkipAll to end the walk.
func walk(root *os.Root, visit func(entry) error) error {
	w := walker{visit: visit}
	if err := w.dir(root, ".", 0); !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

type walker struct {
	visit func(entry) error
	count int
}

func (w *walker) dir(root *os.Root, at string, depth int) error {
	if depth > maxDepth {
		return &TooLargeError{What: fmt.Sprintf("directories of the agent nest more than %d levels", maxDepth)}
	}
	entries, err := w.read(root)
	if err != nil {
		return err
	}
	for _, found := range entries {
		info, err := root.Lstat(found.Name())
		if err != nil {
			continue // the entry is gone
		}
		e := entry{path: path.Join(at, found.Name()), dir: root, info: info}
		switch err := w.visit(e); {
		case errors.Is(err, fs.SkipDir):
			continue
		case err != nil:
			return err
		}
		if !info.IsDir() {
			continue
		}
		below, err := openDir(root, found.Name())
		if err != nil {
			continue // the directory is gone, or the worker may not read it
		}
		err = w.dir(below, e.path, depth+1)
		below.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the entries of a directory, sorted by name.
func (w *walker) read(root *os.Root) ([]fs.DirEntry, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, nil // the worker may not read the directory
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		some, err := f.ReadDir(1024)
		all = append(all, some...)
		if w.count += len(some); w.count > maxEntries {
			return nil, &TooLargeError{What: fmt.Sprintf("the work directory of the agent holds more than %d files", maxEntries)}
		}
		if err != nil || len(some) == 0 {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("read the work directory: %w", err)
			}
			slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
			return all, nil
		}
	}
}

// TooLargeError reports that a work directory is too large to pack, or an archive too large to restore.
type TooLargeError struct {
	// What names what is too large, with its size and the limit.
	What string
}

// Error returns the message.
func (e *TooLargeError) Error() string { return e.What }
