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

// Bounds of a work directory that can be walked, packed and restored.
const (
	maxEntries = 200_000
	maxDepth   = 256
)

// entry is one file of a work directory.
type entry struct {
	// path is relative to the work directory, with slashes.
	path string
	// dir holds the entry under the name of info.
	dir  *os.Root
	info fs.FileInfo
}

// walk calls visit with all that lies in a directory, sorted by name, a directory before what it holds. Links are not
// followed. What disappears meanwhile, and directories that cannot be read, are left out. visit may return
// fs.SkipDir to leave a directory out, and fs.SkipAll to end the walk.
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
			continue // it has gone
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
			continue // it has gone, or is closed to the worker
		}
		err = w.dir(below, e.path, depth+1)
		below.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns what a directory holds, by name.
func (w *walker) read(root *os.Root) ([]fs.DirEntry, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, nil // it is closed to the worker
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

// TooLargeError says that a work directory is too large to be packed, or an archive to be restored.
type TooLargeError struct {
	// What says what is too large, with its size and the limit.
	What string
}

// Error returns the message.
func (e *TooLargeError) Error() string { return e.What }
